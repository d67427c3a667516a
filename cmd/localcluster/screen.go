package main

import (
	"fmt"
	"io"
	"log"
	"time"
)

// screen shows messages.
type screen struct {
	out   *log.Logger
	began time.Time
}

func newScreen(out io.Writer) *screen { return &screen{log.New(out, "", 0), time.Now()} }

// say prints a message with the time since the start before it.
func (s *screen) say(format string, args ...any) {
	s.plain(fmt.Sprintf("[%6.1fs] %s", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...)))
}

// plain prints text as it is, with a newline at its end.
func (s *screen) plain(text string) { s.out.Print(text) }
