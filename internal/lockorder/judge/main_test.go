package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/lockorder"
)

// TestOnlyTheDeclaredOrdersPass judges exactly the declared orders, and plants fewer,
// more, and none.
func TestOnlyTheDeclaredOrdersPass(t *testing.T) {
	for _, test := range []struct {
		name  string
		seen  []lockorder.Order
		wrong string // empty for nothing
	}{
		{"what is declared", lockorder.Declared, ""},
		{"less", lockorder.Declared[1:], "is declared, and no run took it"},
		{"more", append([]lockorder.Order{{Before: "eventlog.Log.mu", Lock: "store.core.mu"}}, lockorder.Declared...), "is not declared"},
		{"nothing", nil, "no such file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "locks"), "store.core.mu\neventlog.Log.mu\n")
			var seen strings.Builder
			for _, o := range test.seen {
				expect.OK(t, json.NewEncoder(&seen).Encode(lockorder.Sighting{Order: o, Program: "some.test"}))
			}
			if seen.Len() > 0 {
				write(t, filepath.Join(dir, "seen"), seen.String())
			}
			if err := run(dir); (err == nil) != (test.wrong == "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("got %v, want %q", err, test.wrong)
			}
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	expect.OK(t, os.WriteFile(path, []byte(text), 0o600))
}
