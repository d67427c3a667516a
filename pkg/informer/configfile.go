package informer

import (
	"bytes"
	"context"
	"os"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

// ConfigFile reads the configuration from a file and looks at it again from
// time to time: files that are mounted or replaced do not all announce it.
type ConfigFile struct {
	path    string
	every   time.Duration
	handler ConfigHandler
	last    []byte
	failed  string // the last error about reading, told once
}

// NewConfigFile makes a source that reads nothing before Run.
func NewConfigFile(path string, every time.Duration, handler ConfigHandler) *ConfigFile {
	return &ConfigFile{path: path, every: every, handler: handler}
}

// Run reads and follows the file until the context ends.
func (c *ConfigFile) Run(ctx context.Context) {
	ticker := time.NewTicker(c.every)
	defer ticker.Stop()
	for {
		c.read()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (c *ConfigFile) read() {
	source := "file " + c.path
	document, err := os.ReadFile(c.path)
	if err != nil {
		if err.Error() != c.failed {
			c.failed = err.Error()
			c.handler.Failed(err, source, nil)
		}
		return
	}
	if c.failed == "" && c.last != nil && bytes.Equal(document, c.last) {
		return
	}
	c.failed, c.last = "", document
	load(document, "", source, nil, config.ErrNoDocument(""), c.handler)
}
