package localcluster

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/paddock-scheduler/paddock/internal/nodeagent"
)

// Options configure a cluster.
type Options struct {
	// Dir holds the state: data, certificates, kubeconfigs, logs. Required. It is created
	// if missing; the data of an earlier cluster there is removed.
	Dir string
	// Kubeconfig is that of an administrator of an existing cluster. Then only schedulers
	// are started, and Binary, Nodes, NodeSpec and APIServerArgs are not used. Empty means a
	// cluster of our own.
	Kubeconfig string
	// Binary is the path of the localplane binary. Required without Kubeconfig.
	Binary string
	// Nodes is the number of nodes to start with; 0 means none.
	Nodes int
	// NodeSpec describes those nodes.
	NodeSpec nodeagent.NodeSpec
	// APIServerArgs are appended to the flags of the API server.
	APIServerArgs []string
	// Progress, if set, is called with one short line after each step of Start.
	Progress func(string)
}

func (o Options) withDefaults() (Options, error) {
	_, err := os.Stat(o.Binary)
	if err != nil && o.Kubeconfig == "" {
		return o, fmt.Errorf("options: Binary: build it with \"make binaries\": %w", err)
	}
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return o, fmt.Errorf("options: Dir: %w", err)
	}
	if o.Binary, err = filepath.Abs(o.Binary); err != nil {
		return o, fmt.Errorf("options: Binary: %w", err)
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return o, nil
}
