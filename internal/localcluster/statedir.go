package localcluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockName is the file that marks a directory as ours and is locked while a cluster uses it.
const lockName = "local-cluster.lock"

// ErrInUse is returned by Start when a running cluster uses the directory.
var ErrInUse = errors.New("a running cluster uses this directory")

// takeDir creates or takes over a directory and removes the data of an earlier cluster. It
// refuses a directory with any other content, and one that is in use with ErrInUse. Logs of
// the previous cluster are kept as NAME.log.old. The directory is ours until the file that it
// returns is closed.
func takeDir(path string) (*os.File, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	marker := filepath.Join(path, lockName)
	if _, err := os.Stat(marker); len(entries) > 0 && errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("state directory %s is not empty and was not made by a local cluster: choose another one", path)
	}
	lock, err := os.OpenFile(marker, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = ErrInUse
		}
		return nil, errors.Join(fmt.Errorf("state directory %s: %w", path, err), lock.Close())
	}
	if err := clean(path); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// clean removes the data that must not survive into the next cluster.
func clean(dir string) error {
	for _, name := range []string{"etcd", "pki"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("state directory: remove the cluster before: %w", err)
		}
	}
	logs, err := filepath.Glob(filepath.Join(dir, "logs", "*.log"))
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	for _, log := range logs {
		if err := os.Rename(log, log+".old"); err != nil {
			return fmt.Errorf("state directory: keep the log before: %w", err)
		}
	}
	return nil
}
