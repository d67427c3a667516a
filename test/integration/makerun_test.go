package integration

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
)

const (
	// startPatience is for a launcher that has nothing to compile; samples may take two minutes.
	startPatience = 4 * time.Minute
	// startPromise is the promised time of a second start.
	startPromise = 20 * time.Second
	// startSlack is how much longer a start may take here: the control plane of the other
	// tests runs beside it, and maybe other work on the same machine.
	startSlack = 4
)

// launched is one run of the program behind "make run".
type launched struct {
	*testing.T
	cmd  *exec.Cmd
	dir  string
	out  string // file with its output
	done chan struct{}
	err  error // why it ended, once it is done
}

// launch starts the program as "make run" does, with three nodes, and waits for the last
// line of its output, which says how to stop everything.
func launch(t *testing.T, dir string) *launched {
	t.Helper()
	l := &launched{T: t, dir: dir, out: filepath.Join(t.TempDir(), "output"), done: make(chan struct{})}
	out := expect.Get(os.Create(l.out))(t)
	defer out.Close() // the child has its own copy
	l.cmd = exec.Command(suite.launcher)
	l.cmd.Stdout, l.cmd.Stderr = out, out
	l.cmd.Env = append(os.Environ(), "NODES=3", "DIR="+dir, "KUBECONFIG=")
	expect.OK(t, localcluster.Spawn(l.cmd))
	go func() {
		l.err = l.cmd.Wait()
		close(l.done)
	}()
	t.Cleanup(func() {
		_ = l.cmd.Process.Kill() // the error is that it has ended, as expected
		<-l.done
		if t.Failed() {
			t.Logf("output of the launcher:\n%s", l.output())
		}
	})
	eventually(l, startPatience, "the launcher is ready", func() (bool, string) {
		select {
		case <-l.done:
			l.Fatalf("the launcher ended by itself: %v", l.err)
		default:
		}
		return strings.Contains(l.output(), "Ctrl-C stops everything"), l.output()
	})
	return l
}

func (l *launched) output() string {
	l.Helper()
	return string(expect.Get(os.ReadFile(l.out))(l))
}

// run runs a command of another program, which must succeed.
func (l *launched) run(program string, words ...string) string {
	l.Helper()
	out, err := exec.Command(program, words...).CombinedOutput()
	if err != nil {
		l.Fatalf("%v: %v\n%s", words, err, out)
	}
	return string(out)
}

// TestMakeRun checks "make run" as a whole: it starts, the commands that it suggests
// work, Ctrl-C leaves nothing behind, and it starts again, quickly.
func TestMakeRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	first := launch(t, dir)
	first.checkTries()
	first.checkStop()

	began := time.Now()
	second := launch(t, dir)
	took := time.Since(began)
	t.Logf("second start: ready after %.1f s", took.Seconds())
	expect.That(t, took <= startSlack*startPromise,
		"the second start takes %v, want at most %v, on a busy machine %d times that", took, startPromise, startSlack)
	expect.Says(t, second.output(), "\nQUEUE ", "\nroot ")
	second.checkStop()
}

var (
	restAddress = regexp.MustCompile(`(?m)^\s*REST API\s+(http://[0-9.:]+)`)
	tree        = regexp.MustCompile(`(?s)^QUEUE .*\nroot .*\n    web `)
	webRuns     = regexp.MustCompile(`(?m)^paddock-sample-shop.* web-.* Running `)
	webWaits    = regexp.MustCompile(`(?m)^paddock-sample-shop.* web-.*root\.shop\.web`)
)

// checkTries runs the commands that the launcher suggests.
func (l *launched) checkTries() {
	rest := restAddress.FindStringSubmatch(l.output())
	if rest == nil {
		l.Fatal("the launcher does not say where its REST API is")
	}
	queues := l.run(suite.plugin, "queues", "--server", rest[1])
	expect.That(l, tree.MatchString(queues), "queues: %s", queues)
	pods := func() string { return l.run(suite.launcher, "--dir", l.dir, "pods") }
	eventually(l, patience, "the pod that waits is told why", func() (bool, string) {
		text := pods() // the reason comes a moment later than the wait
		return strings.Count(text, "paddock-sample-shop") == 5 && strings.Contains(text, "root.research.train"), text
	})
	l.run(suite.launcher, "--dir", l.dir, "scale", "paddock-sample-shop/web", "9")
	// Queue root.shop.web has room for eight of nine.
	eventually(l, patience, "eight pods run and one is told why it waits", func() (bool, string) {
		text := pods()
		return len(webRuns.FindAllString(text, -1)) == 8 && len(webWaits.FindAllString(text, -1)) == 1, text
	})
}

// checkStop sends Ctrl-C, waits for the end, and checks that it is clean and that nothing
// of the launcher is left.
func (l *launched) checkStop() {
	l.Helper()
	children := l.children()
	expect.That(l, runtime.GOOS != "linux" || len(children) == 5,
		"children %v, want etcd, API server, controller manager, nodes and scheduler", children)
	expect.OK(l, l.cmd.Process.Signal(syscall.SIGINT))
	select {
	case <-l.done:
		expect.That(l, l.err == nil, "after Ctrl-C the launcher ends with %v, want exit code 0", l.err)
	case <-time.After(time.Minute):
		l.Fatal("the launcher does not end within a minute after Ctrl-C")
	}
	for _, child := range children {
		expect.That(l, syscall.Kill(child, 0) != nil, "process %d outlives the launcher", child)
	}
	if rest := restAddress.FindStringSubmatch(l.output()); rest != nil { // children are known on Linux only
		if c, err := net.DialTimeout("tcp", strings.TrimPrefix(rest[1], "http://"), time.Second); err == nil {
			_ = c.Close()
			l.Errorf("a process still listens at %s", rest[1])
		}
	}
	out, err := exec.Command(suite.launcher, "--dir", l.dir, "pods").CombinedOutput()
	expect.That(l, err != nil && strings.Contains(string(out), "no cluster runs in"),
		"the command pods says %q, %v after the end", out, err)
}

// children lists the children of the launcher by the threads that made them, on Linux
// only: there is no /proc elsewhere.
func (l *launched) children() (children []int) {
	l.Helper()
	lists := expect.Get(filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", l.cmd.Process.Pid)))(l)
	for _, list := range lists {
		for _, pid := range strings.Fields(string(expect.Get(os.ReadFile(list))(l))) {
			children = append(children, expect.Get(strconv.Atoi(pid))(l))
		}
	}
	return children
}
