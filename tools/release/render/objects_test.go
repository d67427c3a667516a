package render

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// Key names an object: kind, namespace (empty if it has none) and name.
type Key struct{ Kind, Namespace, Name string }

// Objects reads YAML documents. Two objects with one key are an error, and so is
// a document without kind or name.
func Objects(text []byte) (map[Key]*unstructured.Unstructured, error) {
	out := map[Key]*unstructured.Unstructured{}
	for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("object %d: %w", len(out)+1, err)
		}
		if len(o.Object) == 0 {
			continue // only comments
		}
		key := Key{o.GetKind(), o.GetNamespace(), o.GetName()}
		if key.Kind == "" || key.Name == "" {
			return nil, fmt.Errorf("object %d has no kind or no metadata.name", len(out)+1)
		}
		if out[key] != nil {
			return nil, fmt.Errorf("%v is there twice", key)
		}
		out[key] = o
	}
}
