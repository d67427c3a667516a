package build

import (
	"strings"
	"sync"
	"time"
)

// counter counts compiled packages.
type counter struct {
	report func(Progress)

	mu sync.Mutex
	p  Progress
}

// begin sets the number of packages to compile.
func (c *counter) begin(total int) { c.change(func(p *Progress) { p.Total = total }) }

// line takes one line of "go build -v". It returns false for a line that is no import path.
func (c *counter) line(text string) bool {
	if !isImportPath(text) {
		return false
	}
	c.change(func(p *Progress) {
		p.Done++
		p.Total = max(p.Total, p.Done)
		p.Package = text
	})
	return true
}

func (c *counter) change(f func(*Progress)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.p)
	c.report(c.p)
}

// tick reports regularly until the returned function is called; that waits for the last report.
func (c *counter) tick(interval time.Duration) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-quit:
				return
			case <-ticker.C:
				c.change(func(*Progress) {})
			}
		}
	}()
	return func() { close(quit); <-done }
}

// isImportPath distinguishes the package lines of "go build -v" from the messages of
// compiler and linker.
func isImportPath(line string) bool {
	return line != "" && !strings.ContainsAny(line, " \t:#()\"") && !strings.HasPrefix(line, "/") && !strings.HasPrefix(line, ".")
}
