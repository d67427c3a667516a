package render

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// withComponent is a kustomization of a user's: an overlay, and PodGroups.
func withComponent(t *testing.T, overlay string) map[Key]*unstructured.Unstructured {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs(manifests)
	if err != nil {
		t.Fatal(err)
	}
	to, err := filepath.Rel(dir, root)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("resources: [%[1]s/%[2]s]\ncomponents: [%[1]s/components/podgroups]\n", to, overlay)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	rendered, err := Kustomize(dir)
	return objects(t, rendered, err)
}

// PodGroups can be added to every overlay with a Deployment: two objects more, another
// configuration and an argument, and nothing of the overlay is lost.
func TestPodGroupsComponent(t *testing.T) {
	const config = "ConfigMap yunikorn/paddock-scheduler"
	groups := meanings(t, kustomized(t, "overlays/with-podgroups"))
	for _, overlay := range []string{"base", "overlays/single", "overlays/ha", "overlays/migrate-from-yunikorn"} {
		want := meanings(t, kustomized(t, overlay))
		for _, added := range []string{"ClusterRole /paddock-scheduler-podgroups", "ClusterRoleBinding /paddock-scheduler-podgroups", config} {
			if groups[added] == "" || groups[added] == want[added] {
				t.Errorf("%s: with-podgroups does nothing to %s", overlay, added)
			}
			want[added] = groups[added]
		}
		const deployment, after = "Deployment yunikorn/paddock-scheduler", "\n        env:\n"
		want[deployment] = strings.Replace(want[deployment], after, "\n        - --feature-gates=NominatedNodeNameForExpectation=false"+after, 1)
		if diff := cmp.Diff(want, meanings(t, withComponent(t, overlay))); diff != "" {
			t.Errorf("%s (-want +with the component):\n%s", overlay, diff)
		}
	}
	values := maps.Clone(haValues)
	values["podGroups"] = map[string]any{"enabled": true}
	if diff := cmp.Diff(meanings(t, withComponent(t, "overlays/ha")), meanings(t, charted(t, standard(open(values))))); diff != "" {
		t.Errorf("(-ha with the component +chart):\n%s", diff)
	}
}

// No installation has the definition of PodGroups: deleting the installation would delete
// all PodGroups of the cluster.
func TestDefinitionsAreApart(t *testing.T) {
	for name, dir := range installs {
		for key := range kustomized(t, dir) {
			if key.Kind == "CustomResourceDefinition" {
				t.Errorf("install/%s has %v", name, key)
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(manifests, "install/podgroups-crd.yaml"))
	if all := objects(t, text, err); len(all) != 1 || all[Key{"CustomResourceDefinition", "", "podgroups.scheduling.x-k8s.io"}] == nil {
		t.Errorf("install/podgroups-crd.yaml has %d objects", len(all))
	}
}
