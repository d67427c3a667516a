package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// recordName is the file in DIR with the path of the kubeconfig of the cluster that runs. The
// launcher writes it and removes it at the end.
const recordName = "running"

func writeRecord(dir, kubeconfig string) error {
	if err := os.WriteFile(filepath.Join(dir, recordName), []byte(kubeconfig), 0o600); err != nil {
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

// readRecord returns the path of the kubeconfig, or what to do when nothing runs in dir.
func readRecord(dir string) (kubeconfig string, err error) {
	data, err := os.ReadFile(filepath.Join(dir, recordName))
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("no cluster runs in %s: start one with \"make run\", or name its directory with --dir (DIR)", dir)
	}
	if err != nil {
		return "", fmt.Errorf("look for the cluster: %w", err)
	}
	return string(data), nil
}
