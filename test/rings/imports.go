package rings

import (
	"fmt"
	"slices"
	"strings"
)

// Package is what the go command knows about a package, without its tests.
type Package struct {
	ImportPath string
	Imports    []string // directly
	Deps       []string // directly and indirectly
}

const (
	scheduler        = "k8s.io/kubernetes/pkg/scheduler"
	schedulerConfig  = "k8s.io/kubernetes/pkg/scheduler/apis/config"
	schedulerTypes   = "k8s.io/kube-scheduler/config"
	externalsOfAPIs  = schedulerConfig + " and " + schedulerTypes
	externalsOfPure  = "the standard library, k8s.io/apimachinery and YAML"
	externalsOfLease = "the standard library, k8s.io/apimachinery and k8s.io/client-go"
)

var (
	// effects are the parts of the standard library that rings 0 to 2 leave alone.
	effects = []string{
		"context", "crypto/rand", "database/sql", "io/fs", "log", "math/rand", "net", "os", "plugin", "runtime", "sync", "syscall", "testing",
	}
	libraries = []string{"k8s.io/apimachinery", "sigs.k8s.io/yaml", "go.yaml.in/yaml"}
	upstream  = []string{"k8s.io/kubernetes", "k8s.io/kube-scheduler"}
	adapters  = []string{Module + "/pkg/plugins", Module + "/cmd", Module + "/internal", Module + "/test"}
)

// CheckImports returns a sentence for each import that breaks the rings, sorted.
func CheckImports(packages []Package) []string {
	var found []string
	for _, p := range packages {
		ring, ok := RingOf(p.ImportPath)
		if !ok {
			found = append(found, p.ImportPath+" has no ring: add it to the table in test/rings")
			continue
		}
		for _, imported := range p.Imports {
			if problem := checkImport(p.ImportPath, ring, imported); problem != "" {
				found = append(found, fmt.Sprintf("%s imports %s: %s", p.ImportPath, imported, problem))
			}
		}
		if within(p.ImportPath, Module+"/pkg/plugins") && slices.Contains(p.Deps, scheduler) {
			found = append(found, fmt.Sprintf("%s depends on %s: upstream's own tests could not run with our plugins",
				p.ImportPath, scheduler))
		}
	}
	slices.Sort(found)
	return found
}

// checkImport returns what is wrong with one import; empty if nothing is.
func checkImport(path string, ring Ring, imported string) string {
	switch {
	case within(imported, Module):
		return checkInside(ring, imported)
	case pure(ring):
		return unless(!anyWithin(imported, effects) && (isStandard(imported) || anyWithin(imported, libraries)),
			"rings 0 to 2 use only "+externalsOfPure+", and of the first nothing with an effect")
	case within(path, Module+"/pkg/leader"):
		return unless(isStandard(imported) || anyWithin(imported, []string{"k8s.io/apimachinery", "k8s.io/client-go"}),
			"it uses only "+externalsOfLease)
	case !anyWithin(imported, upstream) || anyWithin(path, adapters):
		return ""
	case within(path, Module+"/apis"):
		return unless(anyWithin(imported, []string{schedulerConfig, schedulerTypes}),
			"of the scheduler it uses only "+externalsOfAPIs)
	default:
		return "only plugins and programs know the scheduler, which changes every release"
	}
}

func checkInside(ring Ring, imported string) string {
	other, ok := RingOf(imported)
	switch {
	case !ok:
		return "it has no ring: add it to the table in test/rings"
	case other == Tests && ring != Tests:
		return "only tests import it"
	default:
		return unless(other <= ring, fmt.Sprintf("ring %d must not import ring %d", ring, other))
	}
}

func unless(fine bool, problem string) string {
	if fine {
		return ""
	}
	return problem
}

// isStandard returns whether a path is of the standard library: its first element
// has no dot.
func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// within returns whether a package is the root or below it.
func within(path, root string) bool {
	return path == root || strings.HasPrefix(path, root+"/")
}

func anyWithin(path string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return within(path, root) })
}
