package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
)

// The level of significance, stated once. `make test` makes many comparisons with samples; each has
// a chance to fail although the code is right. By Bonferroni's inequality, which needs no
// independence, the sum of these chances bounds the chance that any of them fails: wholeLevel.
// Half of it is for comparisons whose variance is known from the sampling rule, half for those whose
// standard error the profile estimates from a few windows, which are fewer and have longer tails.
// tests/README.md says how many there are; run.sh counts them (JUDGED_LOG) and fails above these.
const (
	wholeLevel   = 1e-3
	mostSampled  = 20000 // comparisons with a known variance in one run of all tests
	mostWindowed = 500   // comparisons with an estimated standard error
	sampledLevel = wholeLevel / 2 / mostSampled
	windowsLevel = wholeLevel / 2 / mostWindowed
)

// How many comparisons this process has made.
var sampledMade, windowedMade int

// logComparisons appends "COMMAND SAMPLED WINDOWED" to the file JUDGED_LOG names.
func logComparisons(command string) {
	path := os.Getenv("JUDGED_LOG")
	if path == "" || sampledMade+windowedMade == 0 {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = fmt.Fprintf(f, "%s %d %d\n", command, sampledMade, windowedMade)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		fail(2, "pprofcheck: %s: %v", filepath.Base(path), err)
	}
}

// bernstein is how far a sum of independent terms may be from its mean at this level, both sides
// together. variance is the sum's, heaviest the largest deviation of one term. Bernstein's inequality
// holds for every distribution, so small counts and skewed ones need no table of their own:
// P(|S - E S| >= t) <= 2 exp(-t^2 / (2 (variance + heaviest t / 3))).
func bernstein(level, variance, heaviest float64) float64 {
	l := math.Log(2 / level)
	m := heaviest / 3
	return m*l + math.Sqrt(m*m*l*l+2*l*variance)
}

// sampledSlack is that of one comparison whose variance is known.
func sampledSlack(variance, heaviest float64) float64 {
	sampledMade++
	return bernstein(sampledLevel, variance, heaviest)
}

// windowedSlack is how many standard errors an estimate from n windows may be off: Student's t with
// n - 1 degrees of freedom, for the standard error itself is estimated from as many numbers.
func windowedSlack(n int) float64 {
	windowedMade++
	return studentLimit(windowsLevel, math.Max(1, float64(n-1)))
}

// binomialOdd says that k of n is too few or too many at this level, p being the chance of each. The
// tails are exact. For a p that is known within a range there are two: each tail is of its own.
func binomialOdd(k, n, pLow, pHigh float64) bool {
	sampledMade++
	return binomialAtMost(k, n, pLow) < sampledLevel/2 || binomialAtLeast(k, n, pHigh) < sampledLevel/2
}

func binomialAtLeast(k, n, p float64) float64 {
	switch {
	case k <= 0:
		return 1
	case k > n || p <= 0:
		return 0
	case p >= 1:
		return 1
	}
	return incompleteBeta(k, n-k+1, p)
}

func binomialAtMost(k, n, p float64) float64 { return binomialAtLeast(n-k, n, 1-p) }

// studentLimit is the t beyond which, on either side, Student's distribution has this much.
func studentLimit(level, df float64) float64 {
	low, high := 0.0, 1e12
	for i := 0; i < 200; i++ {
		t := (low + high) / 2
		if incompleteBeta(df/2, 0.5, df/(df+t*t)) > level {
			low = t
		} else {
			high = t
		}
	}
	return high
}

// incompleteBeta is the regularized incomplete beta function I_x(a, b), by its continued fraction
// (Abramowitz and Stegun 26.5.8, evaluated by Lentz's method).
func incompleteBeta(a, b, x float64) float64 {
	if x <= 0 || x >= 1 {
		return math.Max(0, math.Min(1, x))
	}
	if x > (a+1)/(a+b+2) {
		return 1 - incompleteBeta(b, a, 1-x)
	}
	ga, _ := math.Lgamma(a)
	gb, _ := math.Lgamma(b)
	gab, _ := math.Lgamma(a + b)
	front := math.Exp(gab-ga-gb+a*math.Log(x)+b*math.Log1p(-x)) / a
	const tiny = 1e-300
	c, d := 1.0, 1-(a+b)*x/(a+1)
	if math.Abs(d) < tiny {
		d = tiny
	}
	d = 1 / d
	h := d
	for m := 1.0; m < 10000; m++ {
		for _, num := range []float64{
			m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m)),
			-(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1)),
		} {
			d = 1 + num*d
			c = 1 + num/c
			if math.Abs(d) < tiny {
				d = tiny
			}
			if math.Abs(c) < tiny {
				c = tiny
			}
			d = 1 / d
			h *= d * c
		}
		if math.Abs(d*c-1) < 1e-13 {
			break
		}
	}
	return front * h
}

// cmdLevel prints the level, the counts it is computed for, and what follows from it.
func cmdLevel([]string) bool {
	fmt.Printf("whole %g sampled %d windowed %d\n", wholeLevel, mostSampled, mostWindowed)
	fmt.Printf("normal %.2f standard errors\n", studentLimit(sampledLevel, 1e9))
	fmt.Printf("bernstein %.2f standard errors\n", bernstein(sampledLevel, 1, 0))
	for _, n := range []int{5, 10, 20, 50, 100, 400} {
		fmt.Printf("%d windows: %.2f standard errors\n", n, studentLimit(windowsLevel, float64(n-1)))
	}
	return true
}
