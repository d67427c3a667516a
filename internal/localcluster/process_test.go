package localcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// eventually polls for a condition, for at most 90 seconds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	if err := poll(ctx, 10*time.Millisecond, func(context.Context) (bool, error) { return condition(), nil }); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func TestStopIsGentle(t *testing.T) {
	p := testCluster(t).child(t, "child", "polite")
	expect.Same(t, "the group, or Ctrl-C would reach it", p.PID(), expect.Get(syscall.Getpgid(p.PID()))(t))
	expect.Holds(t, p.Stop())
	expect.That(t, !p.Running() && p.err == nil, "child ended with %v, running: %v", p.err, p.Running())
	expect.Same(t, "last line", "bye: terminated", p.Tail(1))
	expect.Holds(t, p.Stop())
}

func TestStopKillsInTheEnd(t *testing.T) {
	p := testCluster(t).child(t, "child", "stubborn")
	p.patience = 50 * time.Millisecond
	expect.Fails(t, p.Stop(), "child: no end within 50ms")
	expect.That(t, !p.Running(), "child still runs")
}

func TestOwnEndIsReported(t *testing.T) {
	p := testCluster(t).child(t, "child", "broken")
	never := func(context.Context) (bool, error) { return false, nil }
	var e *DiedError
	if err := awaitProcess(t.Context(), p, time.Minute, never); !errors.As(err, &e) {
		t.Fatalf("got %v, want a DiedError", err)
	}
	var exit *exec.ExitError
	expect.That(t, e.Name == "child" && e.Tail == "cannot go on" && errors.As(e, &exit) && exit.ExitCode() == 3,
		"unexpected report %+v", e)
	expect.Fails(t, e, "child ended by itself (exit status 3), see "+p.Log())
}

func TestAwaitingLosesPatience(t *testing.T) {
	p := testCluster(t).child(t, "child", "polite")
	never := func(context.Context) (bool, error) { return false, nil }
	err := awaitProcess(context.Background(), p, 20*time.Millisecond, never)
	expect.Fails(t, err, "child is not ready after 20ms, see "+p.Log())
}

// The kernel must end the children of a caller that is killed.
func TestChildrenDieWithAKilledCaller(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // no parent-death signal there: documented in doc.go
	}
	dir := t.TempDir()
	caller := testCluster(t).child(t, "child", "launcher "+dir)
	pid := 0
	eventually(t, "grandchild is up", func() bool {
		line := tail(filepath.Join(dir, "logs", "grandchild.log"), 1)
		var err error
		pid, err = strconv.Atoi(strings.TrimPrefix(line, "ready "))
		return err == nil
	})
	if processState(pid) == "" {
		t.Fatalf("grandchild %d does not run", pid)
	}
	expect.OK(t, caller.Kill())
	eventually(t, "grandchild is gone", func() bool { s := processState(pid); return s == "" || s == "Z" })
}

// processState returns the state letter of a process, empty if it does not exist.
func processState(pid int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	return rest[:1]
}

func TestTailOfALongLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	expect.OK(t, os.WriteFile(file, []byte(strings.Repeat("more\n", 20000)+"last but one\nlast\n"), 0o600))
	expect.Same(t, "tail", "last but one\nlast", tail(file, 2))
	expect.Says(t, tail(filepath.Join(t.TempDir(), "missing"), 2), "(no log: ")
}

// childVariable makes the test binary play a child process: "role" or "role argument".
const childVariable = "LOCALCLUSTER_TEST_CHILD"

func TestMain(m *testing.M) {
	role, argument, _ := strings.Cut(os.Getenv(childVariable), " ")
	if role == "" {
		os.Exit(m.Run())
	}
	os.Exit(playChild(role, argument))
}

// playChild is a program that behaves by its role, for at most a minute.
func playChild(role, argument string) int {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	end := time.After(time.Minute)
	switch role {
	case "polite": // ends on SIGTERM
		fmt.Println("ready", os.Getpid())
		select {
		case s := <-signals:
			fmt.Println("bye:", s)
			return 0
		case <-end:
			return 9
		}
	case "stubborn": // ignores SIGTERM
		fmt.Println("ready", os.Getpid())
		<-end
		return 9
	case "broken": // ends by itself
		fmt.Println("cannot go on")
		return 3
	case "launcher": // starts a stubborn child and waits
		if _, err := launch(child("grandchild", "stubborn"), argument, func(*Process) {}); err != nil {
			fmt.Println(err)
			return 4
		}
		fmt.Println("ready")
		<-end
		return 9
	default:
		fmt.Println("unknown role", role)
		return 8
	}
}
