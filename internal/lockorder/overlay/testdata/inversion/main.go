// Inversion takes two locks in different orders, one after the other, so that no
// goroutine ever waits. It prints what is wrong, if its locks record their order.
package main

import (
	"fmt"
	"os"

	"github.com/paddock-scheduler/paddock/internal/lockorder"
)

func main() {
	l, b := &ledger{}, &book{}
	l.book, b.ledger = b, l
	l.write()
	b.read()
	if err := lockorder.Wrong(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
