package main

import (
	"fmt"
	"sync"
)

type ledger struct {
	mu   sync.Mutex
	book *book
}

type book struct {
	mu     sync.RWMutex
	ledger *ledger
}

// write takes the lock of the ledger, then that of the book.
func (l *ledger) write() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.book.mu.Lock()
	defer l.book.mu.Unlock()
	fmt.Println("written")
}

// read takes them the other way round.
func (b *book) read() {
	b.mu.RLock()
	defer b.mu.RUnlock()
	b.ledger.mu.Lock()
	defer b.ledger.mu.Unlock()
	fmt.Println("read")
}
