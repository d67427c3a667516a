package render

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// Release is an installation of a chart.
type Release struct {
	// Name and Namespace are those of the release; neither is empty.
	Name, Namespace string
	// Values are set on top of the chart's own; nil means none.
	Values map[string]any
	// Serves are what the API server serves, as in v1/Pod; nil means that none is asked,
	// as by "helm template".
	Serves []string
}

// Chart returns what "helm template" does, without the notes: the objects as
// YAML documents. Values that values.schema.json refuses are an error.
func Chart(dir string, r Release) ([]byte, error) {
	files, err := templates(dir, r)
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if text := strings.TrimSpace(files[name]); path.Ext(name) == ".yaml" && text != "" {
			fmt.Fprintf(&out, "---\n%s\n", text)
		}
	}
	return []byte(out.String()), nil
}

// Notes returns what helm prints after an installation.
func Notes(dir string, r Release) (string, error) {
	files, err := templates(dir, r)
	if err != nil {
		return "", err
	}
	for name, text := range files {
		if path.Base(name) == "NOTES.txt" {
			return text, nil
		}
	}
	return "", fmt.Errorf("chart %s has no NOTES.txt", dir)
}

func templates(dir string, r Release) (map[string]string, error) {
	chart, err := loader.LoadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("load chart %s: %w", dir, err)
	}
	options := chartutil.ReleaseOptions{Name: r.Name, Namespace: r.Namespace, Revision: 1, IsInstall: true}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.APIVersions = slices.Concat(capabilities.APIVersions, r.Serves)
	values, err := chartutil.ToRenderValues(chart, r.Values, options, capabilities)
	if err != nil {
		return nil, fmt.Errorf("values of chart %s: %w", dir, err)
	}
	files, err := engine.Render(chart, values)
	if err != nil {
		return nil, fmt.Errorf("render chart %s: %w", dir, err)
	}
	return files, nil
}

// Key names an object: kind, namespace (empty if it has none) and name.
type Key struct{ Kind, Namespace, Name string }

// objects reads YAML documents. Each must have a kind and a name, and a key of its own.
func objects(t *testing.T, text []byte) map[Key]*unstructured.Unstructured {
	t.Helper()
	out := map[Key]*unstructured.Unstructured{}
	for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return out
		}
		if expect.OK(t, err); len(o.Object) == 0 {
			continue // only comments
		}
		key := Key{o.GetKind(), o.GetNamespace(), o.GetName()}
		expect.That(t, key.Kind != "" && key.Name != "", "%v has no kind or no metadata.name", key)
		expect.That(t, out[key] == nil, "%v is there twice", key)
		out[key] = o
	}
}
