/*
 * user/profile/scale.c - heap samples scaled to estimates, to the last bit as Go does.
 *
 * The estimate is truncated to an integer, and 1 - exp(-x) cancels for small x: one bit of
 * difference in exp() moves the sum of many small objects by whole bytes. So on amd64 exp()
 * is worked out step by step as Go's assembler routine does, which is not libm's rounding.
 *
 * Source: runtime/pprof/protomem.go; math/exp_amd64.s, the same in Go 1.16 to 1.27.
 */
#include "profile/scale.h"

#include <math.h>
#include <string.h>

#ifdef __x86_64__

/* ln 2 in two parts: the upper has so few bits that its product with an exponent is exact. */
#define LN2_UPPER 0.69314718055966295651160180568695068359375
#define LN2_LOWER 0.28235290563031577122588448175013436025525412068e-12
#define LOG2_E	  1.4426950408889634073599246810018920

/* Go makes the same check on the processor it runs on, which is this one. */
static int cpu_has_fma(void)
{
	return __builtin_cpu_supports("avx") && __builtin_cpu_supports("fma");
}

/* a * b + c with one rounding or with two, as Go does on this processor. */
static double mul_add(int fused, double a, double b, double c)
{
	volatile double product;

	if (fused)
		return fma(a, b, c);
	product = a * b; /* volatile: the compiler may not fuse it again */
	return product + c;
}

/* exp(r) - 1 by Taylor for a small |r|: r * (1 + r/2! + ... + r^7/8!). */
static double expm1_small(int fused, double r)
{
	static const double inverse_factorial[] = {
		1.9841269841269841270e-4,
		1.3888888888888888889e-3,
		8.3333333333333333333e-3,
		4.1666666666666666667e-2,
		1.6666666666666666667e-1,
		0.5,
		1.0,
	};
	double sum = 2.4801587301587301587e-5;

	for (size_t i = 0; i < sizeof(inverse_factorial) / sizeof(*inverse_factorial); i++)
		sum = mul_add(fused, sum, r, inverse_factorial[i]);
	return r * sum;
}

/* exp(@x) for -700 < @x <= 0: in that range 2^k never overflows or becomes subnormal. */
static double go_exp(double x)
{
	int fused = cpu_has_fma();
	int64_t k = lrint(x * LOG2_E);
	double kd = (double)k, m, pow2;
	uint64_t bits = (uint64_t)(k + 0x3ff) << 52;

	m = expm1_small(fused,
			mul_add(fused, -kd, LN2_LOWER, mul_add(fused, -kd, LN2_UPPER, x)) * 0.0625);
	/*
	 * exp(2r) - 1 = m * (m + 2) for m = exp(r) - 1. Doing this four times undoes the division
	 * by 16.
	 */
	m *= m + 2.0;
	m *= m + 2.0;
	m *= m + 2.0;
	m = mul_add(fused, m, m + 2.0, 1.0);
	memcpy(&pow2, &bits, sizeof(pow2));
	return m * pow2;
}

#else

/* Other processors' Go routines may differ from libm in the last bit. */
static double go_exp(double x)
{
	return exp(x);
}

#endif

/* exp(x) is below half a unit of 1.0 from here on, so that 1 - exp(x) is 1 exactly. */
#define EXP_NOTHING (-40.0)

static int64_t truncate(double v)
{
	if (!(v < 0x1p63))
		return INT64_MAX;
	return v < -0x1p63 ? INT64_MIN : (int64_t)v;
}

struct scaled scale_heap(int64_t count, int64_t bytes, int64_t size, int64_t rate)
{
	double object, factor;

	if (size && __builtin_mul_overflow(count, size, &bytes))
		bytes = (count < 0) == (size < 0) ? INT64_MAX : INT64_MIN;
	if (count == 0 || bytes == 0)
		return (struct scaled){};
	if (rate <= 1)
		return (struct scaled){ .objects = count, .bytes = bytes };

	object = size ? (double)size : (double)bytes / (double)count;
	if (object < 0)
		/* Go has no objects of such a size */
		return (struct scaled){ .objects = count, .bytes = bytes };
	object = -object / (double)rate;
	factor = 1 / (1 - (object < EXP_NOTHING ? 0.0 : go_exp(object)));
	return (struct scaled){ .objects = truncate((double)count * factor),
				.bytes = truncate((double)bytes * factor) };
}

double scale_heap_one(int64_t size, int64_t rate)
{
	return size > 0 && rate > 1 ? -1 / expm1(-(double)size / (double)rate) : 1;
}

int64_t scale_round(double v)
{
	return truncate(round(v));
}
