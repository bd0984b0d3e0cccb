/*
 * user/sampling/windows/survival.h - how sure is the part that lives of what a site allocated, as windows tell it?
 *
 * What lives at the end is what was allocated last, mostly. So windows are no equal draws: early ones see what has died since, late
 * ones what has not. Some ten windows may have missed all of the time in which what lives was allocated, and then agree with each
 * other that nothing does: how much they differ tells too little, and so does the number of objects in them. That a site's objects
 * outlive GC cycles at all, which is seen of each object, tells that later ones may live where those of windows do not.
 */
#ifndef SAMPLING_WINDOWS_SURVIVAL_H
#define SAMPLING_WINDOWS_SURVIVAL_H

/* Parts: from 0 to 1. */
struct survival {
	double share; /* the part that lives of what windows saw */
	double windows; /* how many windows saw any of it, as if all had seen the same (Kish's effective sample size) */
	double once;   /* the part that outlives a GC cycle ... */
	double always; /* ... and as many as ended in all of the time */
	double unseen; /* the part of the time that no window stands for */
};

/* The effective number of windows that saw so many objects each: (sum x)^2 / sum x^2. */
double survival_windows(double sum, double squares);

/* A lower bound of the variance of the share. */
double survival_least(const struct survival *s);
/*
 * The variance of how many live of @n objects that may be there no more, of which @live are taken to be: whatever is wrong with that
 * is so of all of them.
 */
double survival_maybe(double n, double live);
/* What the unseen time adds to the variance of the share. */
double survival_unseen(const struct survival *s);

#endif
