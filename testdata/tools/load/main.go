// Load puts a bounded load on a server on the loopback interface, for the tests.
//
//	load nats [FLAGS] HOST:PORT		messages through nats-server, in its text protocol
//	load http [FLAGS] URL...		GETs, one URL after the other
//
//	-for 5s		stop after this long
//	-n N		or after N messages or requests in all
//	-rate N		at most N a second in all
//	-clients N	connections
//	-size N		bytes of a message
//
// It prints how many were sent and how many answers came; exit status 1 when there were none.
package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

type load struct {
	end            time.Time
	n, rate        int64
	clients, size  int
	sent, answered int64
	targets        []string
}

// batch is how much may be sent now; 0 when the load is over.
func (l *load) batch(most int64) int64 {
	for {
		now := time.Now()
		done := atomic.LoadInt64(&l.sent)
		if now.After(l.end) || done >= l.n {
			return 0
		}
		// At the rate, from the start on: what is left until a tenth of a second from now.
		due := l.n
		if l.rate > 0 {
			start := l.end.Add(-*lasts)
			due = int64(now.Sub(start).Seconds()*float64(l.rate)) + l.rate/10
		}
		if due > done {
			if due-done < most {
				most = due - done
			}
			if atomic.CompareAndSwapInt64(&l.sent, done, done+most) {
				return most
			}
			continue
		}
		time.Sleep(5 * time.Millisecond)
	}
}

var lasts = flag.Duration("for", 5*time.Second, "")

// natsRead answers the server's pings and counts what it delivers. A message is a line
// "MSG subject sid size", then that many bytes and a line's end.
func (l *load) natsRead(c net.Conn) error {
	in := bufio.NewReaderSize(c, 64<<10)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return nil
		}
		switch {
		case bytes.HasPrefix(line, []byte("PING")):
			if _, err := io.WriteString(c, "PONG\r\n"); err != nil {
				return nil
			}
		case bytes.HasPrefix(line, []byte("-ERR")):
			return fmt.Errorf("the server says %s", line)
		case bytes.HasPrefix(line, []byte("MSG ")):
			f := bytes.Fields(line)
			size, err := strconv.Atoi(string(f[len(f)-1]))
			if err != nil {
				return err
			}
			if _, err := in.Discard(size + 2); err != nil {
				return nil
			}
			atomic.AddInt64(&l.answered, 1)
		}
	}
}

// Each client publishes to the next one.
func (l *load) nats(id int) error {
	c, err := net.Dial("tcp", l.targets[0])
	if err != nil {
		return err
	}
	defer c.Close()
	fmt.Fprintf(c, "CONNECT {\"verbose\":false,\"name\":\"load-%d\"}\r\nSUB load.%d 1\r\nPING\r\n", id, id)
	failed := make(chan error, 1)
	go func() { failed <- l.natsRead(c) }()
	message := fmt.Sprintf("PUB load.%d %d\r\n%s\r\n", (id+1)%l.clients, l.size,
		strings.Repeat("x", l.size))
	for n := l.batch(50); n > 0; n = l.batch(50) {
		if _, err := io.WriteString(c, strings.Repeat(message, int(n))); err != nil {
			select {
			case err = <-failed:
			default:
			}
			return err
		}
	}
	time.Sleep(200 * time.Millisecond) // for what is on its way
	return nil
}

func (l *load) http(id int) error {
	for i := id; l.batch(1) > 0; i++ {
		r, err := http.Get(l.targets[i%len(l.targets)])
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, r.Body)
		r.Body.Close()
		if err != nil {
			return err
		}
		if r.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", l.targets[i%len(l.targets)], r.Status)
		}
		atomic.AddInt64(&l.answered, 1)
	}
	return nil
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: load nats|http [FLAGS] TARGET...")
	os.Exit(2)
}

func main() {
	var l load

	flag.Int64Var(&l.n, "n", 1<<40, "")
	flag.Int64Var(&l.rate, "rate", 0, "")
	flag.IntVar(&l.clients, "clients", 4, "")
	flag.IntVar(&l.size, "size", 128, "")
	if len(os.Args) < 3 {
		usage()
	}
	run := map[string]func(int) error{"nats": l.nats, "http": l.http}[os.Args[1]]
	flag.CommandLine.Parse(os.Args[2:])
	l.targets = flag.Args()
	if run == nil || len(l.targets) == 0 || l.clients < 1 {
		usage()
	}
	l.end = time.Now().Add(*lasts)
	var wg sync.WaitGroup
	for i := 0; i < l.clients; i++ {
		wg.Add(1)
		go func(id int) {
			defer wg.Done()
			if err := run(id); err != nil {
				fmt.Fprintln(os.Stderr, "load:", err)
			}
		}(i)
	}
	wg.Wait()
	fmt.Println(l.sent, "sent,", l.answered, "answered")
	if l.answered == 0 {
		os.Exit(1)
	}
}
