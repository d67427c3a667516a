//go:build unix && !linux

package localcluster

import "syscall"

// childAttributes puts a child into a process group of its own. There is no parent-death signal here: if the
// caller is killed, its children stay.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
