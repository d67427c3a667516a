package integration

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
)

const (
	// startPatience is for a launcher that has nothing to compile; samples may take two
	// minutes.
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
	done chan error
}

// launch starts the program as "make run" does, with three nodes.
func launch(t *testing.T, dir string) *launched {
	t.Helper()
	l := &launched{T: t, dir: dir, out: filepath.Join(t.TempDir(), "output"), done: make(chan error, 1)}
	out := expect.Get(os.Create(l.out))(t)
	defer out.Close() // the child has its own copy
	l.cmd = exec.Command(suite.launcher)
	l.cmd.Stdout, l.cmd.Stderr = out, out
	l.cmd.Env = append(os.Environ(), "NODES=3", "DIR="+dir, "KUBECONFIG=", "REST=", "LDFLAGS="+suite.ldflags)
	expect.OK(t, localcluster.Spawn(l.cmd))
	ended := make(chan struct{})
	go func() {
		l.done <- l.cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = l.cmd.Process.Kill() // the error is that it has ended, as expected
		<-ended
		if t.Failed() {
			t.Logf("output of the launcher:\n%s", l.output())
		}
	})
	return l
}

func (l *launched) output() string {
	text, err := os.ReadFile(l.out)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// awaitReady waits for the last line of the output, which says how to stop everything,
// and returns how long that took.
func (l *launched) awaitReady(began time.Time) time.Duration {
	l.Helper()
	eventually(l, startPatience, "the launcher is ready", func() (bool, string) {
		select {
		case err := <-l.done:
			l.Fatalf("the launcher ended by itself: %v", err)
		default:
		}
		return strings.Contains(l.output(), "Ctrl-C stops everything"), l.output()
	})
	return time.Since(began)
}

// interrupt sends Ctrl-C, waits for the end and checks that it is clean.
func (l *launched) interrupt() {
	l.Helper()
	expect.OK(l, l.cmd.Process.Signal(syscall.SIGINT))
	select {
	case err := <-l.done:
		if err != nil {
			l.Errorf("after Ctrl-C the launcher ends with %v, want exit code 0", err)
		}
	case <-time.After(time.Minute):
		l.Fatal("the launcher does not end within a minute after Ctrl-C")
	}
	if text := l.output(); !strings.Contains(text, "everything is stopped") {
		l.Error("the launcher ends without a farewell")
	}
}

// try runs one of the commands that the launcher suggests.
func (l *launched) try(words ...string) string {
	l.Helper()
	out, err := exec.Command(suite.launcher, append([]string{"--dir", l.dir}, words...)...).CombinedOutput()
	if err != nil {
		l.Fatalf("%v: %v\n%s", words, err, out)
	}
	return string(out)
}

// addresses returns where the API server and REST listen.
func (l *launched) addresses() []string {
	l.Helper()
	config := expect.Get(clientcmd.BuildConfigFromFlags("", filepath.Join(l.dir, "admin.kubeconfig")))(l)
	out := []string{config.Host}
	for _, line := range strings.Split(l.output(), "\n") {
		if words := strings.Fields(line); len(words) == 3 && words[0] == "REST" && words[1] == "API" {
			out = append(out, words[2])
		}
	}
	if len(out) != 2 {
		l.Fatalf("the launcher does not say where its REST API is")
	}
	for i := range out {
		u := expect.Get(url.Parse(out[i]))(l)
		out[i] = u.Host
	}
	return out
}

// TestMakeRun checks "make run" as a whole: it starts, the commands that it suggests
// work, Ctrl-C leaves nothing behind, and it starts again, quickly.
func TestMakeRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	first := launch(t, dir)
	t.Logf("first start: ready after %.1f s", first.awaitReady(time.Now()).Seconds())
	checkTries(first)
	checkStop(first)

	began := time.Now()
	second := launch(t, dir)
	took := second.awaitReady(began)
	t.Logf("second start: ready after %.1f s", took.Seconds())
	if took > startSlack*startPromise {
		t.Errorf("the second start takes %v, want at most %v, on a busy machine %d times that", took, startPromise, startSlack)
	}
	if text := second.output(); !strings.Contains(text, "\nQUEUE ") || !strings.Contains(text, "\nroot ") {
		t.Errorf("the launcher shows no queues:\n%s", text)
	}
	checkStop(second)
}

// checkTries runs the commands that the launcher suggests.
func checkTries(l *launched) {
	l.Helper()
	out, err := exec.Command(suite.plugin, "queues", "--server", "http://"+l.addresses()[1]).CombinedOutput()
	if text := string(out); err != nil || !strings.HasPrefix(text, "QUEUE ") || !strings.Contains(text, "\nroot ") || !strings.Contains(text, "\n    web ") {
		l.Errorf("queues: %v\n%s", err, text)
	}
	eventually(l, patience, "the pod that waits is told why", func() (bool, string) {
		text := l.try("pods") // the reason comes a moment later than the wait
		return strings.Count(text, "paddock-sample-shop") == 5 && strings.Contains(text, "root.research.train"), text
	})
	if text := l.try("scale", "paddock-sample-shop/web", "9"); !strings.Contains(text, "9 replicas now, 3 before") {
		l.Errorf("scale: %s", text)
	}
	// Queue root.shop.web has room for eight of nine.
	eventually(l, patience, "eight pods run and one is told why it waits", func() (bool, string) {
		text := l.try("pods")
		running, waiting := 0, 0
		for _, line := range strings.Split(text, "\n") {
			if !strings.HasPrefix(line, "paddock-sample-shop") || !strings.Contains(line, " web-") {
				continue
			}
			if strings.Contains(line, " Running ") {
				running++
			} else if strings.Contains(line, "root.shop.web") {
				waiting++
			}
		}
		return running == 8 && waiting == 1, text
	})
}

// checkStop interrupts the launcher and checks that nothing of it is left.
func checkStop(l *launched) {
	l.Helper()
	addresses := l.addresses()
	children := childrenOf(l.T, l.cmd.Process.Pid)
	if runtime.GOOS == "linux" && len(children) != 5 {
		l.Errorf("the launcher has %d children %v, want etcd, API server, controller manager, nodes and scheduler", len(children), children)
	}
	l.interrupt()
	for _, child := range children {
		if now, err := processAt(child.pid); err == nil && now == child {
			l.Errorf("process %d (%s) outlives the launcher", child.pid, child.name)
		}
	}
	for _, address := range addresses {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			l.Errorf("a process still listens on %s: %v", address, err)
			continue
		}
		expect.Holds(l, listener.Close())
	}
	if out, err := exec.Command(suite.launcher, "--dir", l.dir, "pods").CombinedOutput(); err == nil || !strings.Contains(string(out), "no cluster runs in") {
		l.Errorf("the command pods says %q, %v after the end", out, err)
	}
}

// process is a process of the machine; started distinguishes it from a later one with the
// same number.
type process struct {
	pid, parent   int
	name, started string
}

// childrenOf lists the children of a process, on Linux only.
func childrenOf(t *testing.T, parent int) []process {
	t.Helper()
	if runtime.GOOS != "linux" {
		return nil // no /proc: checking the addresses must suffice
	}
	entries := expect.Get(os.ReadDir("/proc"))(t)
	var out []process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if p, err := processAt(pid); err == nil && p.parent == parent { // on an error it has just ended
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b process) int { return a.pid - b.pid })
	return out
}

// processAt reads /proc/PID/stat: number, (name), state, parent, ..., start time as field
// 22.
func processAt(pid int) (process, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, err
	}
	text := string(data)
	open, end := strings.Index(text, "("), strings.LastIndex(text, ")")
	fields := strings.Fields(text[end+1:])
	if open < 0 || end < open || len(fields) < 20 {
		return process{}, fmt.Errorf("stat of process %d is %q", pid, text)
	}
	parent, err := strconv.Atoi(fields[1])
	return process{pid: pid, parent: parent, name: text[open+1 : end], started: fields[19]}, err
}
