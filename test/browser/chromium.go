package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Program returns the browser: what CHROMIUM says, or chromium of the path.
func Program() (string, error) {
	if program := os.Getenv("CHROMIUM"); program != "" {
		return program, nil
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if program, err := exec.LookPath(name); err == nil {
			return program, nil
		}
	}
	return "", errors.New("no Chromium is installed, which the tests of the web pages need: " +
		"apt-get install chromium, or give its program in the variable CHROMIUM")
}

// flags keep the browser from doing anything but what it is told.
var flags = []string{
	"--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
	"--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
}

// closeTime is how long the browser may take to end by itself.
const closeTime = 10 * time.Second

// Browser is a running browser.
type Browser struct {
	cmd  *exec.Cmd
	out  io.WriteCloser
	gone chan struct{} // closed when its process is

	mu      sync.Mutex // guards the rest, and writing
	last    int
	waiting map[int]chan message
	tabs    map[string]*Tab // by session
	ended   error
}

// message is one of the protocol: an answer has an ID, an event a method.
type message struct {
	ID      int             `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// Start starts a browser that keeps its files in a directory. It ends with the
// context or with [Browser.Close].
func Start(ctx context.Context, dir string) (*Browser, error) {
	program, err := Program()
	if err != nil {
		return nil, err
	}
	args := append([]string{"--user-data-dir=" + dir}, flags...)
	if os.Getuid() == 0 {
		args = append(args, "--no-sandbox") // Chromium refuses to run as root with it
	}
	theirIn, ourOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	ourIn, theirOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, theirIn.Close(), ourOut.Close())
	}
	b := &Browser{cmd: exec.CommandContext(ctx, program, args...), out: ourOut, gone: make(chan struct{}), waiting: map[int]chan message{}, tabs: map[string]*Tab{}}
	var said strings.Builder
	b.cmd.Stderr = &said
	b.cmd.ExtraFiles = []*os.File{theirIn, theirOut} // 3 and 4, where it looks for them
	b.cmd.Cancel = func() error { return b.cmd.Process.Kill() }
	err = b.cmd.Start()
	_ = errors.Join(theirIn.Close(), theirOut.Close())
	if err != nil {
		return nil, errors.Join(err, ourIn.Close(), ourOut.Close())
	}
	go b.read(ourIn, &said)
	return b, nil
}

// read hands out what the browser says until it ends.
func (b *Browser) read(in io.ReadCloser, said *strings.Builder) {
	for reader := bufio.NewReader(in); ; {
		text, err := reader.ReadBytes(0)
		if err != nil {
			_ = in.Close()
			wait := b.cmd.Wait() // said is complete then
			close(b.gone)
			b.end(fmt.Errorf("the browser has ended (%w); it said: %s", errors.Join(err, wait), said))
			return
		}
		var m message
		if err := json.Unmarshal(text[:len(text)-1], &m); err != nil {
			continue // not for us
		}
		b.mu.Lock()
		answer, tab := b.waiting[m.ID], b.tabs[m.Session]
		delete(b.waiting, m.ID)
		b.mu.Unlock()
		if answer != nil {
			answer <- m
		} else if tab != nil {
			tab.happened(m)
		}
	}
}

func (b *Browser) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = err
	for _, answer := range b.waiting {
		close(answer)
	}
	b.waiting = map[int]chan message{}
}

// call has the browser do something and returns what it answered.
func (b *Browser) call(ctx context.Context, session, method string, params, result any) error {
	text, err := json.Marshal(params)
	if err != nil {
		return err
	}
	answer, err := b.send(message{Method: method, Session: session, Params: text})
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case m, ok := <-answer:
		switch {
		case !ok:
			return fmt.Errorf("%s: %w", method, b.ended)
		case m.Error != nil:
			return fmt.Errorf("%s: %s", method, m.Error.Message)
		case result == nil:
			return nil
		}
		return json.Unmarshal(m.Result, result)
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, ctx.Err())
	}
}

func (b *Browser) send(m message) (<-chan message, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended != nil {
		return nil, b.ended
	}
	b.last++
	m.ID = b.last
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	answer := make(chan message, 1)
	b.waiting[m.ID] = answer
	_, err = b.out.Write(append(text, 0))
	return answer, err
}

// Close ends the browser, if it did not end before. Nothing writes to its directory
// from then on.
func (b *Browser) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	_ = b.call(ctx, "", "Browser.close", struct{}{}, nil)
	err := b.out.Close()
	select {
	case <-b.gone:
	case <-ctx.Done():
		err = errors.Join(err, b.cmd.Process.Kill())
		<-b.gone
	}
	return err
}

// Version is what the browser calls itself.
func (b *Browser) Version(ctx context.Context) (string, error) {
	var v struct{ Product string }
	err := b.call(ctx, "", "Browser.getVersion", struct{}{}, &v)
	return v.Product, err
}
