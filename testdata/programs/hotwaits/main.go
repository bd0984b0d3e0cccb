// hotwaits does nothing but wait: goroutines that hand values and locks to each other, until it
// is killed. A CPU profile of it has the compiler copy the runtime's waiting into its callers.
package main

import (
	"fmt"
	"sync"
)

func main() {
	a, b := make(chan int), make(chan int)
	var mu sync.Mutex
	go func() {
		for v := range a {
			b <- v
		}
	}()
	go func() {
		for {
			mu.Lock()
			mu.Unlock()
		}
	}()
	fmt.Println("ready")
	for {
		var w sync.WaitGroup
		a <- 1
		<-b
		mu.Lock()
		mu.Unlock()
		w.Add(1)
		go w.Done()
		w.Wait()
	}
}
