//go:debug randseednop=0

package simulation_test

import (
	"flag"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

func TestMain(m *testing.M) {
	// Stacks name the seed of their history, see live. The go:debug directive does not
	// support this setting.
	if err := os.Setenv("GODEBUG", strings.TrimPrefix(os.Getenv("GODEBUG")+",tracebacklabels=1", ",")); err != nil {
		panic(err)
	}
	klog.SetLogger(klog.Logger{}) // upstream logs every pod that fits no node
	metrics.Register()
	// A bubble of synctest has its own clock and its own goroutines. The goroutine behind
	// the signal that upstream listens for belongs to the whole program and must not
	// start in a bubble. The handler that delays error reports since the last report must
	// be removed, because the last report may be of another clock.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGUSR2)
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] //nolint:reassign // there is no other way
	flag.Parse()
	// With one processor goroutines interleave less than in parallel, so that the seed
	// decides as much as possible.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(800)
	go watched.watch(*patienceFlag)
	os.Exit(m.Run())
}
