//go:build lockorder

// Package locks has the locks of all packages, here those that are watched.
package locks

import "github.com/sasha-s/go-deadlock"

// Mutex is a watched sync.Mutex.
type Mutex = deadlock.Mutex

func init() { deadlock.Opts.DeadlockTimeout = 0 } // tests may take any time
