package lockorder

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Sighting means that a program has seen an order for the first time, or, if no lock was
// held before, that a lock is taken at all.
type Sighting struct {
	Order
	Program string
	Stack   string // of the caller that takes the lock; empty if no lock was held before
}

// variable is an environment variable. It names the file to which programs append their
// sightings, several at a time; without it sightings are not written.
const variable = "LOCKORDER"

// tell appends a sighting to the file.
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

// add appends a line to a file in one write, so that lines of other programs do not mix
// with it.
func add(path string, line []byte) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	return errors.Join(err, f.Close())
}

// ReadSightings reads the sightings in a file.
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
