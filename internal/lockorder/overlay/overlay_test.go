package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// TestRewrite: locks in known forms are replaced, and those in unknown forms are refused.
// A lock that is not replaced would not be seen.
func TestRewrite(t *testing.T) {
	for _, test := range []struct {
		name, source string
		want         string // part of the result, or of the error
		refused      bool
	}{
		{"a field", "type a struct {\n\tn int\n\tmu sync.Mutex // guards n\n}", "mu lockorder.Mutex[lockOf_a_mu] // guards n", false},
		{"one for readers", "type a struct{ mu sync.RWMutex }", "mu lockorder.RWMutex[lockOf_a_mu]", false},
		{"two in a struct", "type a struct {\n\tmu sync.Mutex\n\tother sync.Mutex\n}", "other lockorder.Mutex[lockOf_a_other]", false},
		{"a type with parameters", "type a[T any] struct{ mu sync.Mutex }", "mu lockorder.Mutex[lockOf_a_mu]", false},
		{"a variable", "var mu sync.Mutex", "var mu lockorder.Mutex[lockOf_mu]", false},
		{"in a block of variables", "var (\n\tn int\n\tmu sync.Mutex\n)", "mu lockorder.Mutex[lockOf_mu]", false},
		{"beside what stays", "var once sync.Once\n\nvar mu sync.Mutex", "var once sync.Once", false},
		{"embedded", "type a struct{ sync.Mutex }", "p.go:7:16: this lock would not watch", true},
		{"two at a time", "type a struct{ mu, other sync.Mutex }", "would not watch", true},
		{"two variables at a time", "var mu, other sync.Mutex", "would not watch", true},
		{"with a value", "var mu = sync.Mutex{}", "would not watch", true},
		{"of no name", "type a struct{ b struct{ mu sync.Mutex } }", "would not watch", true},
		{"a pointer", "type a struct{ mu *sync.Mutex }", "would not watch", true},
		{"many", "type a struct{ mu [4]sync.Mutex }", "would not watch", true},
		{"by name", "type a struct{ mu map[string]*sync.RWMutex }", "would not watch", true},
		{"a type", "type a sync.Mutex", "would not watch", true},
		{"another name of a type", "type a = sync.Mutex", "would not watch", true},
		{"of a function", "func f() {\n\tvar mu sync.Mutex\n\tmu.Lock()\n}", "would not watch", true},
		{"of a type of a function", "func f() {\n\ttype a struct{ mu sync.Mutex }\n}", "would not watch", true},
		{"made", "func f() any { return new(sync.Mutex) }", "would not watch", true},
		{"a literal", "func f() any { return &sync.RWMutex{} }", "would not watch", true},
		{"an argument", "func f(mu *sync.Mutex) {}", "would not watch", true},
		{"one that watches and one that does not", "var mu sync.Mutex\n\nfunc f() any { return &sync.Mutex{} }", "would not watch", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			watching, _, err := rewrite("p.go", []byte("package p\n\nimport (\n\t\"sync\"\n)\n\n"+test.source+"\n"))
			got := string(watching)
			if err != nil {
				got = err.Error()
			}
			if (err != nil) != test.refused || !strings.Contains(got, test.want) {
				t.Errorf("got %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestOtherNames: locks are found by any import name of their package.
func TestOtherNames(t *testing.T) {
	for source, wrong := range map[string]string{
		"package p\n\nimport locks \"sync\"\n\nvar mu locks.Mutex\n": "under another name",
		"package p\n\nimport . \"sync\"\n\nvar mu Mutex\n":           "under another name",
		"package p\n\nimport \"sync\"\n\nvar mu sync.Mutex\n":        "no block of imports",
	} {
		if _, _, err := rewrite("p.go", []byte(source)); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("got %v, want %q of\n%s", err, wrong, source)
		}
	}
}

var mutex = regexp.MustCompile(`\bsync\.(RW)?Mutex\b`)

// TestAllLocksWatch counts the locks of the scheduler's packages in another way, and
// expects as many replaced ones.
func TestAllLocksWatch(t *testing.T) {
	t.Chdir("../../..")
	out, want := t.TempDir(), 0
	err := filepath.WalkDir("pkg", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for line := range strings.Lines(string(source)) {
			code, _, _ := strings.Cut(line, "//")
			want += len(mutex.FindAllString(code, -1))
		}
		return err
	})
	expect.OK(t, err)
	expect.OK(t, run(out, []string{"pkg"}))
	watching := expect.Get(filepath.Glob(filepath.Join(out, "*.go")))(t)
	got := 0
	for _, path := range append(watching, filepath.Join(out, "locks")) {
		text := expect.Get(os.ReadFile(path))(t)
		if filepath.Base(path) == "locks" {
			if n := strings.Count(string(text), "\n"); n != want {
				t.Errorf("%d locks have a name, there are %d:\n%s", n, want, text)
			}
			continue
		}
		got += strings.Count(string(text), "[lockOf_")
		if mutex.Match(text) {
			t.Errorf("%s has a lock that does not watch", path)
		}
	}
	if got != want || want == 0 {
		t.Errorf("%d locks watch, there are %d", got, want)
	}
}

// TestOneNameForTwo: two locks with one name would be taken for one.
func TestOneNameForTwo(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"one/p", "other/p"} {
		expect.OK(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
		expect.OK(t, os.WriteFile(filepath.Join(dir, name, "p.go"), []byte("package p\n\nimport (\n\t\"sync\"\n)\n\nvar mu sync.Mutex\n"), 0o600))
	}
	expect.Fails(t, run(t.TempDir(), []string{dir}), "p.mu is the name of a lock of")
	expect.Holds(t, run(t.TempDir(), []string{filepath.Join(dir, "one")}))
	if err := run(t.TempDir(), []string{t.TempDir()}); err == nil {
		t.Error("there are no locks, and the output does not say so")
	}
}

// TestInversionIsFound runs a program that takes two locks in different orders:
// unchanged, and with locks that record their order.
func TestInversionIsFound(t *testing.T) {
	const program = "./testdata/inversion"
	out := t.TempDir()
	expect.OK(t, run(out, []string{program}))
	for _, test := range []struct {
		flags []string
		found bool
	}{
		{nil, false},
		{[]string{"-overlay", filepath.Join(out, "overlay.json")}, true},
	} {
		text, err := exec.CommandContext(t.Context(), "go", append(append([]string{"run"}, test.flags...), program)...).CombinedOutput()
		want := "written\nread\n"
		if test.found {
			want += "main.book.mu before main.ledger.mu\nmain.ledger.mu before main.book.mu\n"
		}
		if string(text) != want || err != nil {
			t.Errorf("with %q: %v\n%s", test.flags, err, text)
		}
	}
}
