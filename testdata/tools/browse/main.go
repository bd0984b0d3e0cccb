// browse opens a file in a headless chromium and does with it what the lines of its standard
// input say, as a user would: with a mouse and keys.
//
//	browse [-dark] [-size WxH] [-chromium PATH] FILE[#HASH] <SCRIPT
//
// One command a line; what it finds is printed, one line each:
//
//	eval JS          the value of the expression, as JSON
//	wait JS          until the expression is true (10 s)
//	hover FRAME      the mouse on that frame of the flame graph; prints what the page shows there
//	click FRAME      clicks it
//	press SELECTOR   clicks the element
//	key KEY          "Escape", "ArrowDown", "/", "l"
//	type TEXT        into what has the focus
//	dark, light      the system's colours change
//	size WxH         so large is the page from now on; narrower than any window may be, too
//	back             the browser's button
//	shot PATH        a picture
//	pdf PATH         the page, printed
//
// At the end it fails when the page complained in its console, threw, violated its own policy, or
// asked the network for anything.
package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

type message struct {
	ID        int             `json:"id,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// browser speaks the DevTools protocol through two pipes: no port that somebody else could use.
type browser struct {
	cmd     *exec.Cmd
	out     io.WriteCloser
	in      chan message
	last    int
	session string
	bad     []string
}

const patience = 60 * time.Second

func start(path, profile string, w, h int) (*browser, error) {
	theirIn, ourOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	ourIn, theirOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
		"--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
		"--disable-sync", "--disable-extensions", "--mute-audio", "--force-device-scale-factor=1",
		"--remote-debugging-pipe", "--user-data-dir="+profile,
		fmt.Sprintf("--window-size=%d,%d", w, h), "about:blank")
	cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	theirIn.Close()
	theirOut.Close()
	b := &browser{cmd: cmd, out: ourOut, in: make(chan message, 1000)}
	go b.read(ourIn)
	return b, nil
}

func (b *browser) read(r io.Reader) {
	defer close(b.in)
	buf := bufio.NewReaderSize(r, 1<<20)
	for {
		raw, err := buf.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(bytes.TrimSuffix(raw, []byte{0}), &m) == nil {
			b.in <- m
		}
	}
}

func (b *browser) next(deadline <-chan time.Time) (message, error) {
	select {
	case m, ok := <-b.in:
		if !ok {
			return m, errors.New("the browser has gone")
		}
		b.note(m)
		return m, nil
	case <-deadline:
		return message{}, errors.New("the browser does not answer")
	}
}

// note keeps what must not happen.
func (b *browser) note(m message) {
	var p struct {
		Type             string
		Entry            struct{ Level, Text, Source, URL string }
		ExceptionDetails struct {
			Text      string
			Exception struct{ Description string }
		}
		Request struct{ URL string }
		Args    []struct{ Value json.RawMessage }
	}
	json.Unmarshal(m.Params, &p)
	switch m.Method {
	case "Runtime.consoleAPICalled":
		if p.Type == "error" || p.Type == "warning" || p.Type == "assert" {
			b.bad = append(b.bad, "console: "+string(m.Params))
		}
	case "Runtime.exceptionThrown":
		b.bad = append(b.bad, "exception: "+p.ExceptionDetails.Text+" "+p.ExceptionDetails.Exception.Description)
	case "Log.entryAdded":
		if p.Entry.Level == "error" || p.Entry.Level == "warning" {
			b.bad = append(b.bad, "log: "+p.Entry.Source+": "+p.Entry.Text+" "+p.Entry.URL)
		}
	case "Network.requestWillBeSent":
		if !strings.HasPrefix(p.Request.URL, "file:///") && !strings.HasPrefix(p.Request.URL, "data:") {
			b.bad = append(b.bad, "request: "+p.Request.URL)
		}
	}
}

func (b *browser) call(method string, params any) (json.RawMessage, error) {
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	b.last++
	m := message{ID: b.last, Method: method, Params: raw, SessionID: b.session}
	line, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	if _, err := b.out.Write(append(line, 0)); err != nil {
		return nil, err
	}
	deadline := time.After(patience)
	for {
		m, err := b.next(deadline)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		if m.ID != b.last {
			continue
		}
		if m.Error != nil {
			return nil, fmt.Errorf("%s: %s", method, m.Error.Message)
		}
		return m.Result, nil
	}
}

type object = map[string]any

func (b *browser) open(url string) error {
	var made struct{ TargetID string }
	r, err := b.call("Target.createTarget", object{"url": "about:blank"})
	if err != nil {
		return err
	}
	json.Unmarshal(r, &made)
	r, err = b.call("Target.attachToTarget", object{"targetId": made.TargetID, "flatten": true})
	if err != nil {
		return err
	}
	var at struct{ SessionID string }
	json.Unmarshal(r, &at)
	b.session = at.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		if _, err := b.call(domain+".enable", object{}); err != nil {
			return err
		}
	}
	if dark {
		if err := b.scheme("dark"); err != nil {
			return err
		}
	}
	if _, err := b.call("Page.navigate", object{"url": url}); err != nil {
		return err
	}
	return b.wait("document.readyState === 'complete' && location.protocol === 'file:'")
}

func (b *browser) scheme(s string) error {
	_, err := b.call("Emulation.setEmulatedMedia", object{"features": []object{{"name": "prefers-color-scheme", "value": s}}})
	return err
}

func (b *browser) eval(js string) (json.RawMessage, error) {
	r, err := b.call("Runtime.evaluate", object{"expression": js, "returnByValue": true, "awaitPromise": true})
	if err != nil {
		return nil, err
	}
	var v struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	if err := json.Unmarshal(r, &v); err != nil {
		return nil, err
	}
	if v.ExceptionDetails != nil {
		return nil, errors.New(v.ExceptionDetails.Exception.Description)
	}
	if v.Result.Value == nil {
		return json.RawMessage("null"), nil
	}
	return v.Result.Value, nil
}

func (b *browser) wait(js string) error {
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		v, err := b.eval("!!(" + js + ")")
		if err == nil && string(v) == "true" {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("it did not come true: %s (%v)", js, err)
		}
	}
}

// settle lets the page draw what it has to.
func (b *browser) settle() error {
	_, err := b.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
	return err
}

func (b *browser) mouse(kind string, x, y float64) error {
	p := object{"type": kind, "x": x, "y": y}
	if kind != "mouseMoved" {
		p["button"] = "left"
		p["clickCount"] = 1
	}
	_, err := b.call("Input.dispatchMouseEvent", p)
	return err
}

func (b *browser) at(js, what string, click bool) error {
	v, err := b.eval(js)
	if err != nil {
		return err
	}
	var p *struct{ X, Y float64 }
	if err := json.Unmarshal(v, &p); err != nil || p == nil {
		return fmt.Errorf("%s is not there", what)
	}
	if err := b.mouse("mouseMoved", p.X, p.Y); err != nil {
		return err
	}
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		if !click {
			break
		}
		if err := b.mouse(kind, p.X, p.Y); err != nil {
			return err
		}
	}
	return b.settle()
}

func quote(s string) string {
	q, _ := json.Marshal(s)
	return string(q)
}

func (b *browser) press(selector string) error {
	return b.at("(() => { const e = document.querySelector("+quote(selector)+"); if (!e) return null; e.scrollIntoView({ block: 'nearest' }); "+
		"const r = e.getBoundingClientRect(); return r.width ? { x: r.x + r.width / 2, y: r.y + r.height / 2 } : null; })()", selector, true)
}

var keyCodes = map[string]int{"Escape": 27, "Enter": 13, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Tab": 9}

func (b *browser) key(k string) error {
	p := object{"type": "keyDown", "key": k, "windowsVirtualKeyCode": keyCodes[k]}
	if len(k) == 1 {
		p["text"] = k
	} else if k == "Enter" {
		p["text"] = "\r"
	}
	if _, err := b.call("Input.dispatchKeyEvent", p); err != nil {
		return err
	}
	p["type"] = "keyUp"
	delete(p, "text")
	if _, err := b.call("Input.dispatchKeyEvent", p); err != nil {
		return err
	}
	return b.settle()
}

func (b *browser) save(method string, params object, path string) error {
	r, err := b.call(method, params)
	if err != nil {
		return err
	}
	var v struct{ Data string }
	json.Unmarshal(r, &v)
	bytes, err := base64.StdEncoding.DecodeString(v.Data)
	if err != nil {
		return err
	}
	return os.WriteFile(path, bytes, 0o644)
}

// show prints JSON with its characters as they are.
func show(v json.RawMessage) error {
	var any any
	d := json.NewDecoder(bytes.NewReader(v))
	d.UseNumber()
	if err := d.Decode(&any); err != nil {
		return err
	}
	e := json.NewEncoder(os.Stdout)
	e.SetEscapeHTML(false)
	return e.Encode(any)
}

const tip = `(() => { const t = document.getElementById('tip'); return t.hidden ? null : t.innerText; })()`

func (b *browser) do(word, rest string) error {
	print := func(v json.RawMessage, err error) error {
		if err != nil {
			return err
		}
		return show(v)
	}
	switch word {
	case "eval":
		return print(b.eval(rest))
	case "wait":
		return b.wait(rest)
	case "hover", "click":
		if err := b.at("flame.where("+quote(rest)+")", "the frame "+rest, word == "click"); err != nil || word == "click" {
			return err
		}
		return print(b.eval(tip))
	case "press":
		return b.press(rest)
	case "key":
		return b.key(rest)
	case "type":
		_, err := b.call("Input.insertText", object{"text": rest})
		return err
	case "dark", "light":
		if err := b.scheme(word); err != nil {
			return err
		}
		return b.settle()
	case "size":
		var w, h int
		if _, err := fmt.Sscanf(rest, "%dx%d", &w, &h); err != nil {
			return err
		}
		if _, err := b.call("Emulation.setDeviceMetricsOverride", object{"width": w, "height": h, "deviceScaleFactor": 1, "mobile": false}); err != nil {
			return err
		}
		return b.settle()
	case "back":
		_, err := b.eval("history.back()")
		time.Sleep(100 * time.Millisecond)
		if err != nil {
			return err
		}
		return b.settle()
	case "shot":
		return b.save("Page.captureScreenshot", object{"format": "png"}, rest)
	case "pdf":
		return b.save("Page.printToPDF", object{"printBackground": true, "landscape": true}, rest)
	}
	return fmt.Errorf("no such command")
}

func (b *browser) script(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		word, rest, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		if word == "" || word[0] == '#' {
			continue
		}
		if err := b.do(word, rest); err != nil {
			return fmt.Errorf("%s %s: %w", word, rest, err)
		}
	}
	return lines.Err()
}

// end closes it, and waits for what it still has to say.
func (b *browser) end() {
	session := b.session
	b.settle()
	b.session = ""
	b.call("Browser.close", object{})
	b.session = session
	done := make(chan error, 1)
	go func() { done <- b.cmd.Wait() }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		b.cmd.Process.Kill()
		<-done
	}
}

var dark bool

func run() error {
	size := flag.String("size", "1200x800", "of the window")
	path := flag.String("chromium", "chromium", "the browser")
	flag.BoolVar(&dark, "dark", false, "the system prefers dark")
	flag.Parse()
	var w, h int
	if _, err := fmt.Sscanf(*size, "%dx%d", &w, &h); err != nil || flag.NArg() != 1 {
		return errors.New("usage: browse [-dark] [-size WxH] [-chromium PATH] FILE[#HASH] <SCRIPT")
	}
	file, hash, _ := strings.Cut(flag.Arg(0), "#")
	abs, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	if _, err := os.Stat(abs); err != nil {
		return err
	}
	profile, err := os.MkdirTemp("", "browse")
	if err != nil {
		return err
	}
	defer os.RemoveAll(profile)
	b, err := start(*path, profile, w, h)
	if err != nil {
		return err
	}
	url := "file://" + abs
	if hash != "" {
		url += "#" + hash
	}
	err = b.open(url)
	if err == nil {
		err = b.script(os.Stdin)
	}
	b.end()
	for _, s := range b.bad {
		fmt.Fprintln(os.Stderr, "browse: "+s)
		if err == nil {
			err = errors.New("the page is not clean")
		}
	}
	return err
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "browse:", err)
		os.Exit(1)
	}
}
