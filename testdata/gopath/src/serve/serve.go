// Package serve answers HTTP requests on 127.0.0.1 with as little of the standard library as it takes: no net/http and
// no net, which with all that they import are most of the time that a subject takes to compile.
//
//	/debug/pprof/NAME[?debug=N]	a profile of runtime/pprof, as net/http/pprof gives it
//	/debug/pprof/profile?seconds=N	of the CPU, as it does
//	PATH				what was handled as PATH
//
// A request is read until its empty line, answered as HTTP/1.0, and its connection closed. Every call blocks in the
// kernel: there is no network poller, and no lock of this package.
package serve

import (
	"bytes"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	root       = "/debug/pprof/"
	requestMax = 8192
)

// Server has all its paths before it serves.
type Server struct {
	Port  int
	fd    int
	paths map[string]func(query string) string
}

// Listen takes port, or any when it is 0.
func Listen(port int) (*Server, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	at := &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
	if err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return nil, err
	}
	if err = syscall.Bind(fd, at); err != nil {
		return nil, err
	}
	if err = syscall.Listen(fd, 16); err != nil {
		return nil, err
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		return nil, err
	}
	return &Server{Port: name.(*syscall.SockaddrInet4).Port, fd: fd, paths: map[string]func(string) string{}}, nil
}

// Handle has path answered by what f returns.
func (s *Server) Handle(path string, f func(query string) string) { s.paths[path] = f }

// Serve returns only when no connection can be accepted any more.
func (s *Server) Serve() error {
	for {
		fd, _, err := syscall.Accept4(s.fd, syscall.SOCK_CLOEXEC)
		switch err {
		case nil:
			go s.answer(fd)
		case syscall.EINTR, syscall.ECONNABORTED:
		default:
			return err
		}
	}
}

func (s *Server) answer(fd int) {
	defer syscall.Close(fd)
	path, query := target(readHead(fd))
	var body bytes.Buffer
	status := "200 OK"
	if f := s.paths[path]; f != nil {
		body.WriteString(f(query))
	} else if path == root+"profile" {
		status = cpu(&body, query)
	} else if p := pprof.Lookup(strings.TrimPrefix(path, root)); p != nil && strings.HasPrefix(path, root) {
		debug, _ := strconv.Atoi(Value(query, "debug"))
		p.WriteTo(&body, debug)
	} else {
		status = "404 Not Found"
	}
	write(fd, []byte("HTTP/1.0 "+status+"\r\nContent-Length: "+strconv.Itoa(body.Len())+"\r\n\r\n"))
	write(fd, body.Bytes())
}

// cpu profiles the CPU for as long as the query says, and yields the status.
func cpu(body *bytes.Buffer, query string) string {
	seconds, err := strconv.Atoi(Value(query, "seconds"))
	if err == nil {
		err = pprof.StartCPUProfile(body)
	}
	if err != nil {
		return "500 Internal Server Error"
	}
	time.Sleep(time.Duration(seconds) * time.Second)
	pprof.StopCPUProfile()
	return "200 OK"
}

// Value is that of a query's field, "" when there is none. Nothing is unescaped.
func Value(query, field string) string {
	for _, f := range strings.Split(query, "&") {
		if strings.HasPrefix(f, field+"=") {
			return f[len(field)+1:]
		}
	}
	return ""
}

// readHead reads a request up to its empty line, and no more than requestMax.
func readHead(fd int) string {
	var head []byte
	for b := make([]byte, 1024); len(head) < requestMax && !bytes.Contains(head, []byte("\r\n\r\n")); {
		n, err := syscall.Read(fd, b)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			break
		}
		head = append(head, b[:n]...)
	}
	return string(head)
}

// target is what a request asks for: "GET /more?x=1 HTTP/1.0".
func target(head string) (path, query string) {
	words := strings.Fields(head)
	if len(words) < 2 || words[0] != "GET" {
		return "", ""
	}
	if i := strings.IndexByte(words[1], '?'); i >= 0 {
		return words[1][:i], words[1][i+1:]
	}
	return words[1], ""
}

func write(fd int, b []byte) {
	for len(b) > 0 {
		n, err := syscall.Write(fd, b)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return
		}
		b = b[n:]
	}
}
