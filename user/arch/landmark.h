/*
 * user/arch/landmark.h - a function of our own that is entered in the way of a Go function. What
 * a probe costs at such a place is measured on it.
 */
#ifndef ARCH_LANDMARK_H
#define ARCH_LANDMARK_H

#include <stdint.h>

/*
 * Calls it @n times, each time with a request for @size bytes of no type, in the registers in
 * which Go's allocator gets it.
 */
void landmark_call(uint64_t n, uint64_t size);
/*
 * Address of the branch of its stack check, where a probe would go; 0: no such function was
 * written for this machine.
 */
uint64_t landmark_site(void);
/* Where it returns, an instruction that the kernel single-steps when it is probed; 0 as above. */
uint64_t landmark_return(void);

#endif
