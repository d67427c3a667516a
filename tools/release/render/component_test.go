package render

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// withComponent is a kustomization of a user's: an overlay, and PodGroups.
func withComponent(t *testing.T, overlay string) map[Key]*unstructured.Unstructured {
	t.Helper()
	dir := expect.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	root := expect.Get(filepath.Abs(manifests))(t)
	to := expect.Get(filepath.Rel(dir, root))(t)
	text := fmt.Sprintf("resources: [%[1]s/%[2]s]\ncomponents: [%[1]s/components/podgroups]\n", to, overlay)
	expect.OK(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600))
	return objects(t, expect.Get(Kustomize(dir))(t))
}

// PodGroups can be added to every overlay with a Deployment: two objects more, another
// configuration and an argument, and nothing of the overlay is lost.
func TestPodGroupsComponent(t *testing.T) {
	const config = "ConfigMap yunikorn/paddock-scheduler"
	groups := meanings(t, kustomized(t, "overlays/with-podgroups"))
	for _, overlay := range []string{"base", "overlays/single", "overlays/ha", "overlays/migrate-from-yunikorn"} {
		want := meanings(t, kustomized(t, overlay))
		for _, added := range []string{"ClusterRole /paddock-scheduler-podgroups", "ClusterRoleBinding /paddock-scheduler-podgroups", config} {
			expect.That(t, groups[added] != "" && groups[added] != want[added],
				"%s: with-podgroups does nothing to %s", overlay, added)
			want[added] = groups[added]
		}
		const deployment, after = "Deployment yunikorn/paddock-scheduler", "\n        env:\n"
		want[deployment] = strings.Replace(want[deployment], after, "\n        - --feature-gates=NominatedNodeNameForExpectation=false"+after, 1)
		expect.Same(t, overlay+" with the component", want, meanings(t, withComponent(t, overlay)))
	}
	values := maps.Clone(haValues)
	values["podGroups"] = map[string]any{"enabled": true}
	expect.Same(t, "the chart, against ha with the component", meanings(t, withComponent(t, "overlays/ha")), meanings(t, charted(t, standard(open(values)))))
}

// No installation has the definition of PodGroups: deleting the installation would delete
// all PodGroups of the cluster.
func TestDefinitionsAreApart(t *testing.T) {
	for name, dir := range installs {
		for key := range kustomized(t, dir) {
			expect.That(t, key.Kind != "CustomResourceDefinition", "install/%s has %v", name, key)
		}
	}
	text := expect.Get(os.ReadFile(filepath.Join(manifests, "install/podgroups-crd.yaml")))(t)
	want := []Key{{"CustomResourceDefinition", "", "podgroups.scheduling.x-k8s.io"}}
	expect.Same(t, "objects of install/podgroups-crd.yaml", want, slices.Collect(maps.Keys(objects(t, text))))
}
