package informer

import (
	"bytes"
	"context"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

// ConfigFile reads the configuration from a file and reads it again at intervals, because
// not every mount or replacement of a file causes a notification.
type ConfigFile struct {
	path    string
	every   time.Duration
	handler ConfigHandler
	last    []byte
	failed  string // the last read error, reported once
}

// NewConfigFile makes a source. It reads nothing before Run.
func NewConfigFile(path string, every time.Duration, handler ConfigHandler) *ConfigFile {
	return &ConfigFile{path: path, every: every, handler: handler}
}

// Run reads and follows the file until the context ends.
func (c *ConfigFile) Run(ctx context.Context) {
	wait.UntilWithContext(ctx, func(context.Context) { c.read() }, c.every)
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
