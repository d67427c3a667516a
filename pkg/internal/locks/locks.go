//go:build !lockorder

// Package locks has the locks of all packages. They are those of package sync. With build
// tag lockorder they end the process where a lock is taken twice by one goroutine, or two
// locks in both orders (make lockorder).
package locks

import "sync"

// Mutex is sync.Mutex, or one that is watched.
type Mutex = sync.Mutex
