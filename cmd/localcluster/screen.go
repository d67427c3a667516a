package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// screen shows messages.
type screen struct {
	mu    sync.Mutex
	out   io.Writer
	began time.Time
}

func newScreen(out io.Writer) *screen { return &screen{out: out, began: time.Now()} }

// say prints a message with the time since the start before it.
func (s *screen) say(format string, args ...any) {
	s.plain(fmt.Sprintf("[%6.1fs] %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...)))
}

// plain prints text as it is.
func (s *screen) plain(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprint(s.out, text)
}
