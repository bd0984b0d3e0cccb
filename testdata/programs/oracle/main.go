// A subject for the oracle with the shapes that are easy to get wrong: inlining in depth,
// wrappers of promoted and embedded methods, closures, defer, assembly (from the standard
// library), and, from Go 1.18, generics (generics.go).
package main

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"regexp"
	"sort"
	"strings"
	"text/template"
)

type inner struct{ n int }

func (i inner) Value() int    { return i.n + 1 }
func (i *inner) Pointer() int { i.n++; return i.n }

type outer struct {
	*inner
	io.Writer
}

type valuer interface {
	Value() int
	Pointer() int
}

func leaf(x int) int   { return x*x + 1 }
func middle(x int) int { return leaf(x) + leaf(x+1) }
func upper(x int) int  { return middle(x) + middle(x+2) }

//go:noinline
func call(v valuer) int { return v.Value() + v.Pointer() }

func deferred(n int) (r int) {
	defer func() {
		if e := recover(); e != nil {
			r = upper(n)
		}
	}()
	if n > 3 {
		panic("deep")
	}
	return leaf(n)
}

func main() {
	o := outer{&inner{len(os.Args)}, os.Stdout}
	f := o.Value
	fmt.Fprintln(o, upper(o.n), call(o), call(&o), f(), deferred(7), generic())
	if len(os.Args) < 3 {
		return
	}
	// This is never run: it is there for what it links.
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	json.NewEncoder(z).Encode(os.Args)
	template.Must(template.New("x").Parse("{{.}}")).Execute(z, new(big.Int))
	words := strings.Fields(regexp.MustCompile(`\s+`).ReplaceAllString(os.Args[1], " "))
	sort.Slice(words, func(i, j int) bool { return words[i] < words[j] })
	http.ListenAndServeTLS(":0", "", "", http.FileServer(http.Dir(words[0])))
	tls.Dial("tcp", words[1], nil)
}
