package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// recordName is the file in DIR that says how to reach what runs there. The launcher writes it and removes it at
// the end.
const recordName = "running.json"

// record is how to reach a running cluster and its scheduler.
type record struct {
	// Kubeconfig is a path, REST an address with scheme.
	Kubeconfig string `json:"kubeconfig"`
	REST       string `json:"rest"`
}

func (r record) write(dir string) error {
	data, err := json.Marshal(r)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, recordName), data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("note what runs: %w", err)
	}
	return nil
}

func removeRecord(dir string) error {
	if err := os.Remove(filepath.Join(dir, recordName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("forget what ran: %w", err)
	}
	return nil
}

// readRecord says what to do when nothing runs in dir.
func readRecord(dir string) (record, error) {
	var r record
	file := filepath.Join(dir, recordName)
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return r, fmt.Errorf("no cluster runs in %s: start one with \"make run\", or name its directory with --dir (DIR)", dir)
	}
	if err != nil {
		return r, fmt.Errorf("look for the cluster: %w", err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("look for the cluster: %s: %w", file, err)
	}
	return r, nil
}
