//go:build go1.18
// +build go1.18

package main

type number interface{ ~int | ~uint64 | ~float64 }

//go:noinline
func sumOf[T number](v []T) (sum T) {
	for _, x := range v {
		sum += x * x
	}
	return sum
}

func genericWork(r *result) {
	ints, floats := make([]int, 10000), make([]float64, 10000)
	for {
		r.n += uint64(sumOf(ints))
		r.n += uint64(sumOf(floats))
	}
}
