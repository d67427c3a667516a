// Overlay writes copies of the files of packages with locks that record their order, and
// a file for go's flag -overlay that puts the copies in place of the originals.
//
//	overlay OUT DIR...
//
// writes OUT/overlay.json for all packages in and below the directories, and the names of
// their locks to OUT/locks. It fails for a lock that it cannot replace.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: overlay OUT DIR...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out string, dirs []string) error {
	o := overlay{out: out, replace: map[string]string{}, at: map[string]string{}}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := filepath.WalkDir(dir, o.file); err != nil {
			return err
		}
	}
	if len(o.locks) == 0 {
		return errors.New("there are no locks")
	}
	document, err := json.MarshalIndent(map[string]any{"Replace": o.replace}, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(out, "overlay.json"), document, 0o600),
		os.WriteFile(filepath.Join(out, "locks"), []byte(strings.Join(o.locks, "\n")+"\n"), 0o600))
}

// overlay is the replacement of each file, and the locks in all of them.
type overlay struct {
	out     string
	replace map[string]string
	locks   []string
	at      map[string]string // the file of each lock
}

// file writes the copy of a file that has locks.
func (o *overlay) file(path string, _ fs.DirEntry, err error) error {
	if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
		return err
	}
	source, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	watching, locks, err := rewrite(path, source)
	if err != nil || watching == nil {
		return err
	}
	for _, lock := range locks {
		lock = filepath.Base(filepath.Dir(path)) + "." + lock
		if other, known := o.at[lock]; known {
			return fmt.Errorf("%s: %s is the name of a lock of %s, too", path, lock, other)
		}
		o.at[lock] = path
		o.locks = append(o.locks, lock)
	}
	original, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	copied, err := filepath.Abs(filepath.Join(o.out, strings.ReplaceAll(path, string(filepath.Separator), "_")))
	if err != nil {
		return err
	}
	o.replace[original] = copied
	return os.WriteFile(copied, watching, 0o600)
}
