package lockorder

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Sighting is that a program has seen an order for the first time, or, where nothing is
// held before, that a lock is taken at all.
type Sighting struct {
	Order
	Program string
	Stack   string // of the caller that takes the lock; empty where nothing is held before
}

// variable is of the environment. It names the file that programs add their sightings
// to, several at a time; without it they keep them for themselves.
const variable = "LOCKORDER"

// tell adds a sighting to the file.
func tell(s Sighting) {
	path := os.Getenv(variable)
	if path == "" {
		return
	}
	s.Program = filepath.Base(os.Args[0])
	line, err := json.Marshal(s)
	if err == nil {
		err = add(path, append(line, '\n'))
	}
	if err != nil {
		panic(err) // the sightings of a process that cannot write are lost
	}
}

// add writes a line to the end of a file in one piece, or those of others come between.
func add(path string, line []byte) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	return errors.Join(err, f.Close())
}

// ReadSightings reads what programs have added to a file.
func ReadSightings(path string) ([]Sighting, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out []Sighting
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		var s Sighting
		if err := decoder.Decode(&s); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
}
