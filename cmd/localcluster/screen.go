package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/paddock-scheduler/paddock/internal/localcluster/build"
	"github.com/paddock-scheduler/paddock/internal/localcluster/demo"
)

// columns is the width that every terminal has.
const columns = 79

// screen shows messages, and below them one line that changes. If the output is not a terminal, the changing line
// is printed again at most every ten seconds.
type screen struct {
	mu       sync.Mutex
	out      io.Writer
	terminal bool
	shown    int // length of the changing line on the terminal
	last     time.Time
	began    time.Time
}

func newScreen(out io.Writer) *screen {
	return &screen{out: out, terminal: isTerminal(out), began: time.Now()}
}

func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// say prints a message with the time since the start before it.
func (s *screen) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	fmt.Fprintf(s.out, "[%6.1fs] %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// plain prints text as it is.
func (s *screen) plain(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	fmt.Fprint(s.out, text)
}

// progress replaces the changing line.
func (s *screen) progress(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := fmt.Sprintf("[%6.1fs] %s", time.Since(s.began).Seconds(), text)
	if s.terminal {
		s.clear()
		line = line[:min(len(line), columns)] // a wrapped line could not be cleared
		fmt.Fprint(s.out, line)
		s.shown = len(line)
		return
	}
	if time.Since(s.last) >= 10*time.Second {
		s.last = time.Now()
		fmt.Fprintln(s.out, line)
	}
}

// quiet forgets when the changing line was printed last, so that the next one is not shown for ten seconds.
func (s *screen) quiet() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = time.Now()
}

func (s *screen) clear() {
	if s.shown > 0 {
		fmt.Fprint(s.out, "\r", strings.Repeat(" ", s.shown), "\r")
		s.shown = 0
	}
}

// buildLine describes how far a build is.
func buildLine(p build.Progress) string {
	switch {
	case p.Total == 0:
		return "checking and linking"
	case p.Done == 0:
		return fmt.Sprintf("%s to compile", packages(p.Total))
	case p.Done >= p.Total:
		return fmt.Sprintf("compiled %s, linking", packages(p.Total))
	default:
		return fmt.Sprintf("compiled %d of %d packages (%d%%), now %s", p.Done, p.Total, 100*p.Done/p.Total, p.Package)
	}
}

func packages(n int) string {
	if n == 1 {
		return "1 package"
	}
	return fmt.Sprintf("%d packages", n)
}

// placementLine describes how many pods have a node.
func placementLine(placements []demo.Placement) string {
	var placed, expected int
	for _, p := range placements {
		placed += min(p.OnNode, p.Placed)
		expected += p.Placed
	}
	return fmt.Sprintf("%d of %d sample pods are placed", placed, expected)
}

// heldLines names the workloads of which the queues hold pods back, as the samples expect.
func heldLines(placements []demo.Placement) []string {
	var out []string
	for _, p := range placements {
		held, verb := p.Made-p.OnNode, "are"
		if held == 1 {
			verb = "is"
		}
		if held > 0 && p.Done() {
			out = append(out, fmt.Sprintf("%s: %d of %d pods %s pending, as its queue allows no more", p.Workload, held, p.Made, verb))
		}
	}
	return out
}
