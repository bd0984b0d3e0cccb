// counters allocates on command and says what the runtime has counted, so that another program
// can tell whether it reads the same from outside. A byte on stdin is a command:
//
//	s	print "stats MALLOCS N SIZE MALLOCS SIZE MALLOCS ...": runtime.MemStats' total and its
//		size classes 1 to N
//	w	allocate some of every size on every P, with and without pointers; then print "done"
//	g	collect garbage; then print "done"
//	l, q	allocate all the time on all Ps and turn the runtime's statistics; stop it. Print "done"
//	c	hand a token between two goroutines, and print "switches N": how often they went on
//	y	as c, by runtime.Gosched; t: by time.Sleep; m: by a sync.Mutex and a sync.Cond;
//	n	as c, by starting a goroutine that ends at once
//
// What it does between a command's line and the next command allocates nothing.
package main

import (
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

var (
	stats runtime.MemStats
	out   [8192]byte
	stop  int32
	group sync.WaitGroup
)

type chunk struct {
	next *chunk
	rest [5]uintptr
}

//go:noinline
func work(n int) (keep [32][]byte, list *chunk) {
	for i := 0; i < n; i++ {
		size := 1 << uint(i%16)
		keep[i%32] = make([]byte, size+i%7*size/8)
		for k := 0; k < i%5; k++ {
			list = &chunk{next: list}
		}
		p := make([]*byte, 1+i%96)
		p[0] = &keep[i%32][0]
		s := strconv.Itoa(i * 1000003)
		keep[(i+1)%32] = []byte(s)
		if i%16 == 15 {
			keep[i%32] = make([]byte, 40000+i)
		}
	}
	return
}

func everywhere(f func()) {
	for i := 0; i < runtime.GOMAXPROCS(0); i++ {
		group.Add(1)
		go func() {
			f()
			group.Done()
		}()
	}
}

func load() {
	everywhere(func() {
		for atomic.LoadInt32(&stop) == 0 {
			work(100)
		}
	})
	group.Add(1)
	go func() {
		s := []metrics.Sample{{Name: "/gc/heap/objects:objects"}}
		for atomic.LoadInt32(&stop) == 0 {
			metrics.Read(s)
			time.Sleep(time.Millisecond)
		}
		group.Done()
	}()
}

func say(word string, v ...uint64) {
	b := append(out[:0], word...)
	for _, x := range v {
		b = append(b, ' ')
		b = strconv.AppendUint(b, x, 10)
	}
	os.Stdout.Write(append(b, '\n'))
}

func sayStats() {
	runtime.ReadMemStats(&stats)
	b := append(out[:0], "stats "...)
	b = strconv.AppendUint(b, stats.Mallocs, 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, int64(len(stats.BySize)-1), 10)
	for _, s := range stats.BySize[1:] {
		b = append(b, ' ')
		b = strconv.AppendUint(b, uint64(s.Size), 10)
		b = append(b, ' ')
		b = strconv.AppendUint(b, s.Mallocs, 10)
	}
	os.Stdout.Write(append(b, '\n'))
}

const rounds = 20000

// Each of two goroutines receives rounds times, and waits for it almost always.
func channels() uint64 {
	there, back := make(chan int), make(chan int)
	go func() {
		for i := range there {
			back <- i
		}
		close(back)
	}()
	for i := 0; i < rounds; i++ {
		there <- i
		<-back
	}
	close(there)
	<-back
	return 2 * rounds
}

func yields() uint64 {
	for i := 0; i < rounds; i++ {
		runtime.Gosched()
	}
	return rounds
}

func sleeps() uint64 {
	for i := 0; i < rounds/10; i++ {
		time.Sleep(time.Microsecond)
	}
	return rounds / 10
}

// The turn passes by Cond: one wait for each turn.
func conds() uint64 {
	var m sync.Mutex
	c := sync.NewCond(&m)
	turn, over := 0, make(chan int)
	play := func(mine int) {
		m.Lock()
		for i := 0; i < rounds; i++ {
			for turn != mine {
				c.Wait()
			}
			turn = 1 - mine
			c.Signal()
		}
		m.Unlock()
		over <- 0
	}
	go play(0)
	go play(1)
	<-over
	<-over
	return 2 * rounds
}

func births() uint64 {
	for i := 0; i < rounds; i++ {
		group.Add(1)
		go group.Done()
		group.Wait()
	}
	return 2 * rounds
}

func main() {
	var c [1]byte
	// What a program allocates once: threads, goroutines, timers.
	for i := 0; i < 4; i++ {
		load()
		time.Sleep(5 * time.Millisecond)
		atomic.StoreInt32(&stop, 1)
		group.Wait()
		stop = 0
		runtime.GC()
		runtime.ReadMemStats(&stats)
	}
	say("ready")
	for {
		if n, err := os.Stdin.Read(c[:]); n != 1 || err != nil {
			return
		}
		switch c[0] {
		case 's':
			sayStats()
		case 'w':
			everywhere(func() { work(500) })
			group.Wait()
			say("done")
		case 'g':
			runtime.GC()
			say("done")
		case 'l':
			stop = 0
			load()
			say("done")
		case 'q':
			atomic.StoreInt32(&stop, 1)
			group.Wait()
			say("done")
		case 'c':
			say("switches", channels())
		case 'y':
			say("switches", yields())
		case 't':
			say("switches", sleeps())
		case 'm':
			say("switches", conds())
		case 'n':
			say("switches", births())
		}
	}
}
