/*
 * user/arch/landmark.h - a function of our own that is entered as a Go function is: to measure
 * what a probe costs there.
 */
#ifndef ARCH_LANDMARK_H
#define ARCH_LANDMARK_H

#include <stdint.h>

/* Calls it @n times, with a request for @size bytes of no type as Go's allocator gets it. */
void landmark_call(uint64_t n, uint64_t size);
/* Where it branches on the stack check, as a probe would find it; 0: not written for this machine. */
uint64_t landmark_site(void);

#endif
