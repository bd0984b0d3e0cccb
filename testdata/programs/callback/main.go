// callback calls C, which calls Go again, which computes and allocates: outer -> C -> inner.
// With an argument it is a thread made by C that calls inner, and no Go is above that.
package main

/*
#cgo LDFLAGS: -lpthread
#include <pthread.h>

extern void goInner(int n);
static void through_c(int n) { goInner(n); }

static void *run(void *arg)
{
	for (;;)
		goInner(20000);
	return arg;
}

static int c_thread(void)
{
	pthread_t t;

	return pthread_create(&t, 0, run, 0);
}
*/
import "C"

import "os"

var sink []byte
var sum uint64

//go:noinline
func burn(n int) {
	for i := 0; i < n; i++ {
		sum = sum*31 + uint64(i)
	}
}

//go:noinline
func alloc() { sink = make([]byte, 4000) }

//export goInner
func goInner(n C.int) {
	burn(int(n))
	alloc()
}

//go:noinline
func outer(n int) {
	C.through_c(C.int(n))
	burn(100) // or the call would be the last thing
}

func main() {
	if len(os.Args) > 1 {
		C.c_thread()
		select {}
	}
	for {
		outer(20000)
	}
}
