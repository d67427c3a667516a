// Judge compares the lock orders that programs have seen with the declared ones, and
// prints them.
//
//	judge OUT
//
// reads OUT/seen, to which programs have appended, and OUT/locks, which the program in
// overlay has written.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/paddock-scheduler/paddock/internal/lockorder"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: judge OUT")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out string) error {
	seen, err := lockorder.ReadSightings(filepath.Join(out, "seen"))
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(out, "locks"))
	if err != nil {
		return err
	}
	programs := map[string][]string{}
	for _, s := range seen {
		if order := s.Order.String(); s.Before != "" && !slices.Contains(programs[order], s.Program) {
			programs[order] = append(programs[order], s.Program)
		}
	}
	for _, order := range slices.Sorted(maps.Keys(programs)) {
		slices.Sort(programs[order])
		fmt.Printf("%s (%s)\n", order, strings.Join(programs[order], ", "))
	}
	locks := strings.Fields(string(text))
	if err := lockorder.Judge(seen, lockorder.Declared, locks); err != nil {
		return err
	}
	fmt.Printf("lockorder: %d locks were taken, in %d orders, which are declared or follow\n", len(locks), len(programs))
	return nil
}
