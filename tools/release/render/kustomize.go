package render

import (
	"fmt"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Kustomize returns the objects of a kustomization as YAML documents, as
// "kubectl kustomize" does.
func Kustomize(dir string) ([]byte, error) {
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("kustomization %s: %w", dir, err)
	}
	text, err := objects.AsYaml()
	if err != nil {
		return nil, fmt.Errorf("kustomization %s: %w", dir, err)
	}
	return text, nil
}
