/*
 * user/sampling/own_work.h - our own work on many targets keeps to a bound.
 *
 * A part of it can be done less often at the cost of larger errors: readings of the targets' memory (looks, and the runtimes' counts).
 * The rest is as it is: probes that are put in and taken out, samples that are filed, targets that come. So readings get what the
 * rest leaves of the bound, but never less than OWN_READ_LEAST of it, with which they begin: of few readings errors are large.
 *
 * All times are ns that the caller reads; nothing here does.
 */
#ifndef SAMPLING_OWN_WORK_H
#define SAMPLING_OWN_WORK_H

#include <stdint.h>

#define OWN_READ_LEAST 0.75

struct own_work {
	unsigned ppm;	  /* the bound, of one CPU; 0: none */
	unsigned parts;	  /* in which readings share what they get: readers have one or more */
	double part;	  /* of one CPU, and more where others do not take theirs; 0: no bound */
	uint64_t read_ns; /* CPU time that readings have taken so far: readers add theirs */
	double rest;	  /* of one CPU: a moving average */
	uint64_t at_ns, at_own_ns, at_read_ns; /* at the last turn */
};

/* @own_ns: the CPU time of all of our work so far. */
void own_work_begin(struct own_work *w, uint64_t now, uint64_t own_ns);
/* To be called often: divides the bound anew from time to time. */
void own_work_turn(struct own_work *w, uint64_t now, uint64_t own_ns);

#endif
