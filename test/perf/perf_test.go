//go:build perf

package perf

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/kubernetes/test/integration/framework" // flags that scheduler_perf requires
	perf "k8s.io/kubernetes/test/integration/scheduler_perf"

	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	_ "github.com/paddock-scheduler/paddock/apis/config/scheme" // arguments of our plugins
	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/plugins/preemption"
	"github.com/paddock-scheduler/paddock/pkg/plugins/queuesort"
	"github.com/paddock-scheduler/paddock/pkg/plugins/reservation"
)

func TestMain(m *testing.M) {
	if err := setUp(); err != nil {
		log.Fatal(err)
	}
	os.Exit(m.Run())
}

// setUp puts our etcd where scheduler_perf looks for it.
func setUp() error {
	if err := perf.InitTests(); err != nil {
		return err
	}
	legacyregistry.CustomMustRegister(cpu)
	perf.PerfSchedulingLabelFilter = ""
	plane, err := filepath.Abs("../../bin/localplane")
	if err != nil {
		return err
	}
	if _, err := os.Stat(plane); err != nil {
		return fmt.Errorf("%w: build it with `go build -o bin/localplane ./cmd/localplane`", err)
	}
	dir, err := os.MkdirTemp("", "etcd")
	if err != nil {
		return err
	}
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' etcd \"$@\"\n", plane)
	if err := os.WriteFile(filepath.Join(dir, "etcd"), []byte(script), 0o700); err != nil {
		return err
	}
	return os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

var registry = frameworkruntime.Registry{
	queuesort.Name: queuesort.New, preemption.Name: preemption.New, reservation.Name: reservation.New,
}

// writer writes the files of a run, each in a directory of its own.
type writer struct{ b *testing.B }

func (w writer) write(name, content string) string {
	path := filepath.Join(w.b.TempDir(), name)
	expect.OK(w.b, os.WriteFile(path, []byte(content), 0o600))
	return path
}
