package localcluster

import "syscall"

// childAttributes ties a child to the spawning thread and puts it into a process group of its own.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
