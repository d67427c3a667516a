// Inversion takes two locks in different orders, one after the other, so that no
// goroutine ever waits. It prints the orders that its locks record, if they do.
package main

import (
	"fmt"

	"github.com/paddock-scheduler/paddock/internal/lockorder"
)

func main() {
	l, b := &ledger{}, &book{}
	l.book, b.ledger = b, l
	l.write()
	b.read()
	for _, s := range lockorder.Seen() {
		fmt.Println(s.Order)
	}
}
