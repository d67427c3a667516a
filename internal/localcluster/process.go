package localcluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// stopPatience is how long Stop waits after SIGTERM before it kills.
const stopPatience = 15 * time.Second

// program describes how to run a component of the control plane or a scheduler.
type program struct {
	name, binary string
	args, env    []string
	url          string // base address
	ready        string // path that answers 200 when it is ready
	readyIn      time.Duration
}

// Process is one child process.
type Process struct {
	program
	log      string
	cmd      *exec.Cmd
	patience time.Duration // of Stop
	done     chan struct{}
	err      error       // valid once done is closed
	intended atomic.Bool // we asked it to end
}

// launch starts a program with its output appended to the log file dir/logs/NAME.log. ended is
// called from another goroutine when it has ended.
func launch(g program, dir string, ended func(*Process)) (*Process, error) {
	file := filepath.Join(dir, "logs", g.name+".log")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, fmt.Errorf("start %s: %w", g.name, err)
	}
	out, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: open log: %w", g.name, err)
	}
	defer out.Close() // the child has its own copy
	p := &Process{
		program: g, log: file, cmd: exec.Command(g.binary, g.args...), patience: stopPatience, done: make(chan struct{}),
	}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.Env = append(os.Environ(), g.env...)
	if err := Spawn(p.cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", g.name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
		ended(p)
	}()
	return p, nil
}

// PID returns the process id. It may belong to another process once the process has ended.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// URL returns the base address of the HTTP endpoint of the process, without a final slash: the secure port of a scheduler
// with /healthz, /readyz and /metrics, for example. The certificate is self-signed for all but the API server.
func (p *Process) URL() string { return p.url }

// Log returns the path of the log file. All runs of a component append to the same file.
func (p *Process) Log() string { return p.log }

// Running says whether the process has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Kill sends SIGKILL and waits until the process has ended. Killing an ended process does nothing.
func (p *Process) Kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// Stop sends SIGTERM and waits until the process has ended. A process that is still there after 15 seconds is killed,
// and an error says so.
func (p *Process) Stop() error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(p.patience):
	}
	return errors.Join(fmt.Errorf("stop %s: no end within %v, killed", p.name, p.patience), p.Kill())
}

// signal sends a signal that is meant to end the process to the whole process group. The
// process is not reaped before done is near, so the signal cannot reach another group.
func (p *Process) signal(s syscall.Signal) error {
	p.intended.Store(true)
	if !p.Running() {
		return nil
	}
	if err := syscall.Kill(-p.PID(), s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("send %v to %s (pid %d): %w", s, p.name, p.PID(), err)
	}
	return nil
}

// Tail returns the last lines of the log, at most n, or a remark why it cannot be read.
func (p *Process) Tail(n int) string { return tail(p.log, n) }

// tail returns the last n lines of a file, of its last 64 KiB.
func tail(file string, n int) string {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	defer f.Close()
	const window = 64 << 10
	info, err := f.Stat()
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	from := max(0, info.Size()-window)
	data := make([]byte, info.Size()-from)
	read, _ := f.ReadAt(data, from) // what was read is shown, even after an error
	lines := strings.Split(strings.TrimRight(string(data[:read]), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// DiedError says that a component ended although it was not stopped.
type DiedError struct {
	// Name is the component, Log the path of its log file.
	Name, Log string
	// Tail is the end of the log.
	Tail string
	// Err is how it ended; nil means exit code 0.
	Err error
}

// Error names the component, how it ended and its log file; it does not contain the tail.
func (e *DiedError) Error() string {
	how := "exit code 0"
	if e.Err != nil {
		how = e.Err.Error()
	}
	return fmt.Sprintf("%s ended by itself (%s), see %s", e.Name, how, e.Log)
}

// Unwrap returns how the process ended.
func (e *DiedError) Unwrap() error { return e.Err }

func died(p *Process) *DiedError {
	return &DiedError{Name: p.name, Log: p.log, Tail: p.Tail(25), Err: p.err}
}
