/*
 * user/arch/landmark.h - functions of our own that are entered in the way of a Go function. What a
 * probe costs at such places is measured on them.
 */
#ifndef ARCH_LANDMARK_H
#define ARCH_LANDMARK_H

#include <stdint.h>

/* Copies of one function, so that a call passes one probe or none. */
enum landmark {
	LANDMARK_BRANCH, /* to be probed at the branch of its stack check, where a probe would go */
	LANDMARK_RETURN, /* at its return, which the kernel single-steps */
	LANDMARK_BARE,	 /* nowhere */
};

/*
 * Calls it @n times, each time with a request for @size bytes of no type, in the registers in
 * which Go's allocator gets it.
 */
void landmark_call(enum landmark which, uint64_t n, uint64_t size);
/* Address of the instruction to be probed; 0: no such function was written for this machine. */
uint64_t landmark_site(enum landmark which);

#endif
