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
	// Stacks name the seed of their history, see live; go:debug does not know this one.
	if err := os.Setenv("GODEBUG", strings.TrimPrefix(os.Getenv("GODEBUG")+",tracebacklabels=1", ",")); err != nil {
		panic(err)
	}
	klog.SetLogger(klog.Logger{}) // upstream reports every pod that fits nowhere
	metrics.Register()
	// Bubbles of synctest have a clock of their own and goroutines of their own. The
	// goroutine behind the signal that upstream listens for is of the whole program
	// and must not be born in one; and what makes those who report errors wait
	// since the last report, whatever clock that was by, must not be there at all.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGUSR2)
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] //nolint:reassign // there is no other way
	flag.Parse()
	// Goroutines that take turns in one order have fewer histories than those that
	// run side by side: it is the seed that is to decide.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(800)
	go watched.watch(*patienceFlag)
	os.Exit(m.Run())
}
