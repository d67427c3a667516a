package render

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
	"sigs.k8s.io/yaml"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// rows are the files of values that test/integration/docs brings before an API
// server, by name.
func rows(t *testing.T) map[string]map[string]any {
	t.Helper()
	files := expect.Get(filepath.Glob(chartDir + "/ci/*-values.yaml"))(t)
	out := map[string]map[string]any{}
	for _, file := range files {
		var values map[string]any
		expect.OK(t, yaml.UnmarshalStrict(expect.Get(os.ReadFile(file))(t), &values))
		out[filepath.Base(file)] = values
	}
	return out
}

// flat lists what values set, by path, down to what has no keys or keys that the user
// chooses.
func flat(values map[string]any, at string, whole func(path string) bool, into map[string]any) {
	for name, value := range values {
		path := name
		if at != "" {
			path = at + "." + name
		}
		if below, ok := value.(map[string]any); ok && !whole(path) {
			flat(below, path, whole, into)
			continue
		}
		into[path] = value
	}
}

// unset returns the paths of values.yaml that no row sets to something else.
func unset(t *testing.T, rows map[string]map[string]any) []string {
	t.Helper()
	chart := expect.Get(loader.LoadDir(chartDir))(t)
	whole := func(path string) bool { // maps of the user's
		return slices.Contains([]string{"yunikornDefaults", "resources", "nodeSelector", "affinity", "podLabels", "podAnnotations", "serviceAccount.annotations"}, path)
	}
	defaults, left := map[string]any{}, map[string]bool{}
	flat(chart.Values, "", whole, defaults)
	for path := range defaults {
		left[path] = true
	}
	for name, row := range rows {
		set := map[string]any{}
		flat(row, "", whole, set)
		for path, value := range set {
			before, known := defaults[path]
			expect.That(t, known, "%s sets %s, which values.yaml does not have", name, path)
			if !cmp.Equal(before, value) {
				delete(left, path)
			}
		}
	}
	return slices.Sorted(maps.Keys(left))
}

// Every value is tried with something other than its default, and each row renders.
func TestRowsSetEveryValue(t *testing.T) {
	all := rows(t)
	if left := unset(t, all); len(left) > 0 {
		t.Errorf("no file of manifests/chart/ci sets %q to something else than values.yaml", left)
	}
	before := charted(t, standard(nil))
	for name, values := range all {
		if got := charted(t, standard(values)); cmp.Equal(before, got) {
			t.Errorf("%s changes nothing", name)
		}
	}
	// That a value without a row would be seen.
	delete(all, "secured-values.yaml")
	want := []string{"networkPolicy.enabled", "rest.hosts", "rest.tlsSecret"}
	expect.Same(t, "without secured-values.yaml", want, unset(t, all))
}

// The rows are not what users download.
func TestRowsAreNotPacked(t *testing.T) {
	chart := expect.Get(loader.LoadDir(chartDir))(t)
	for _, f := range chart.Raw {
		expect.That(t, filepath.Dir(f.Name) != "ci", "the chart has %s", f.Name)
	}
}
