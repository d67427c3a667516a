package localcluster

import (
	"os/exec"
	"runtime"
	"sync"
)

// spawnRequest asks the spawning thread to start a command.
type spawnRequest struct {
	cmd  *exec.Cmd
	done chan<- error
}

// spawner returns the channel of the one goroutine that starts all children. It keeps its operating system thread for the
// life of the process: Linux kills a child with the *thread* that made it, and Go ends idle threads.
var spawner = sync.OnceValue(func() chan<- spawnRequest {
	requests := make(chan spawnRequest)
	go func() {
		runtime.LockOSThread()
		for r := range requests {
			r.done <- r.cmd.Start()
		}
	}()
	return requests
})

// Spawn starts a command as every process of a cluster is started: in a process group of
// its own, so that Ctrl-C reaches only the caller, and killed by the kernel when the
// caller dies (Linux only).
func Spawn(cmd *exec.Cmd) error {
	cmd.SysProcAttr = childAttributes()
	done := make(chan error, 1)
	spawner() <- spawnRequest{cmd, done}
	return <-done
}
