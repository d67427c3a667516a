package localcluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/paddock-scheduler/paddock/internal/nodeagent"
)

// Options configure a cluster.
type Options struct {
	// Dir holds the state: data, certificates, kubeconfigs, logs. Required. It is created
	// if missing; the data of an earlier cluster there is removed.
	Dir string
	// Binary is the path of the localplane binary. Required.
	Binary string
	// Nodes is the number of nodes to start with; 0 means none.
	Nodes int
	// NodeSpec describes those nodes; the zero value means nodeagent.DefaultNodeSpec.
	NodeSpec nodeagent.NodeSpec
	// LeaseDuration is that of node leases; a silent node is declared Unknown 10 seconds
	// after its lease has expired. 0 means 40 seconds for up to 500 nodes and 5 minutes
	// above, where short leases cost a good part of a core.
	LeaseDuration time.Duration
	// EtcdArgs, APIServerArgs and NodesArgs are appended to the flags of the component.
	EtcdArgs, APIServerArgs, NodesArgs []string
	// Progress, if set, is called with one short line after each step of Start.
	Progress func(string)
}

func (o Options) withDefaults() (Options, error) {
	var errs []error
	if o.Dir == "" {
		errs = append(errs, errors.New("options: Dir is missing: give a directory for the state of the cluster"))
	}
	if o.Binary == "" {
		errs = append(errs, errors.New("options: Binary is missing: give the path of the localplane binary"))
	} else if _, err := os.Stat(o.Binary); err != nil {
		errs = append(errs, fmt.Errorf("options: Binary: build it with \"go build -o bin/ ./cmd/localplane\": %w", err))
	}
	if o.Nodes < 0 {
		errs = append(errs, fmt.Errorf("options: Nodes is %d, must not be negative", o.Nodes))
	}
	if o.LeaseDuration < 0 {
		errs = append(errs, fmt.Errorf("options: LeaseDuration is %v, must not be negative", o.LeaseDuration))
	}
	if err := errors.Join(errs...); err != nil {
		return o, err
	}
	var err error
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return o, fmt.Errorf("options: Dir: %w", err)
	}
	if o.Binary, err = filepath.Abs(o.Binary); err != nil {
		return o, fmt.Errorf("options: Binary: %w", err)
	}
	if o.LeaseDuration == 0 {
		o.LeaseDuration = nodeagent.DefaultLeaseDuration
		if o.Nodes > 500 {
			o.LeaseDuration = 5 * time.Minute
		}
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return o, nil
}
