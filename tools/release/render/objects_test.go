package render

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

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
