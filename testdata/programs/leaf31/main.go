// leaf31: a frameless leaf that is called three times from main.threeTimes for each call
// from main.onceOnly. Nearly all of the CPU is in main.leaf, so its callers must show 3:1
// (and main.leaf as the flat leader). A sampler that follows frame pointers alone skips
// the direct caller and shows main.main above main.leaf. It links no pprof, runs until it
// is killed and prints nothing.
package main

var sink uint64

// No calls and no locals on the stack: the compiler gives it no frame.
//
//go:noinline
func leaf(x uint64) uint64 {
	for i := 0; i < 4000; i++ {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

//go:noinline
func threeTimes(x uint64) uint64 {
	x = leaf(x)
	x = leaf(x + 1)
	return leaf(x + 2)
}

//go:noinline
func onceOnly(x uint64) uint64 {
	return leaf(x) + 1
}

func main() {
	x := uint64(88172645463325252)
	for {
		x = threeTimes(x)
		x = onceOnly(x)
		sink = x
	}
}
