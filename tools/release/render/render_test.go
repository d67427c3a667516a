package render

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

const (
	manifests = "../../../manifests"
	chartDir  = manifests + "/chart"
)

// standard is the release that the kustomizations are: their names and namespace.
func standard(values map[string]any) Release {
	return Release{Name: "paddock", Namespace: "yunikorn", Values: values}
}

func TestUpToDate(t *testing.T) {
	files := expect.Get(Files(manifests))(t)
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(manifests, name))
		expect.Holds(t, err)
		expect.Same(t, name+`: run "make render"`, string(want), string(got))
	}
	there := expect.Get(filepath.Glob(manifests + "/install/*.yaml"))(t)
	for _, path := range there {
		expect.That(t, files["install/"+filepath.Base(path)] != nil, "nothing makes %s", path)
	}
}

// Write mends what is old or missing, and nothing else.
func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "manifests")
	expect.OK(t, os.CopyFS(dir, os.DirFS(manifests)))
	old, missing := filepath.Join(dir, "install/ha.yaml"), filepath.Join(dir, "install/single.yaml")
	expect.OK(t, os.WriteFile(old, []byte("old"), 0o600))
	expect.OK(t, os.Remove(missing))
	changed := expect.Get(Write(dir))(t)
	expect.Same(t, "changed", []string{old, missing}, changed)
	expect.Same(t, "what a second time changes", 0, len(expect.Get(Write(dir))(t)))
}

func kustomized(t *testing.T, dirs ...string) map[Key]*unstructured.Unstructured {
	t.Helper()
	out := map[Key]*unstructured.Unstructured{}
	for _, dir := range dirs {
		maps.Copy(out, objects(t, expect.Get(Kustomize(filepath.Join(manifests, dir)))(t)))
	}
	return out
}

func charted(t *testing.T, r Release) map[Key]*unstructured.Unstructured {
	t.Helper()
	return objects(t, expect.Get(Chart(chartDir, r))(t))
}

// meanings takes away in what chart and kustomizations differ by their nature, and returns the rest as
// text: the namespace, which helm does not own; helm's labels; how a change of the configuration
// replaces the pods, by the name of the ConfigMap or by an annotation; comments in the configuration.
func meanings(t *testing.T, all map[Key]*unstructured.Unstructured) map[string]string {
	t.Helper()
	hashed := ""
	for key := range all {
		if key.Kind == "ConfigMap" && strings.HasPrefix(key.Name, "paddock-scheduler-") {
			hashed = key.Name
		}
	}
	out := map[string]string{}
	for key, o := range all {
		if key.Kind == "Namespace" {
			continue
		}
		o = o.DeepCopy()
		labels := o.GetLabels()
		for _, ofHelm := range []string{"app.kubernetes.io/version", "app.kubernetes.io/managed-by", "helm.sh/chart"} {
			delete(labels, ofHelm)
		}
		o.SetLabels(labels)
		unstructured.RemoveNestedField(o.Object, "spec", "template", "metadata", "annotations")
		if text, found, _ := unstructured.NestedString(o.Object, "data", "scheduler.yaml"); found {
			o.Object["data"].(map[string]any)["scheduler.yaml"] = plain(t, text)
		}
		text := expect.Get(yaml.Marshal(o.Object))(t)
		name := key.Kind + " " + key.Namespace + "/" + key.Name
		if hashed != "" {
			name, text = strings.ReplaceAll(name, hashed, "paddock-scheduler"), []byte(strings.ReplaceAll(string(text), hashed, "paddock-scheduler"))
		}
		out[name] = string(text)
	}
	return out
}

func plain(t *testing.T, text string) string {
	t.Helper()
	var value any
	expect.OK(t, yaml.UnmarshalStrict([]byte(text), &value))
	return string(expect.Get(yaml.Marshal(value))(t))
}

// haValues make of the chart what overlay ha is.
var haValues = map[string]any{"replicaCount": 3, "requireSpread": true, "extraArgs": []any{
	"--v=2", "--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=500ms",
}}

// open has the values let all clients read REST, as the kustomizations do.
func open(values map[string]any) map[string]any {
	all := map[string]any{"rest": map[string]any{"authorization": "None"}}
	maps.Copy(all, values)
	return all
}

func TestChartIsTheKustomization(t *testing.T) {
	single := map[string]any{"replicaCount": 1, "leaderElection": false, "disruptionBudget": map[string]any{"enabled": false}}
	for _, c := range []struct {
		name   string
		dirs   []string
		values map[string]any
	}{
		{"default", []string{"base"}, nil},
		{"single", []string{"overlays/single"}, single},
		{"ha", []string{"overlays/ha"}, haValues},
		{"PodGroups", []string{"overlays/with-podgroups"}, map[string]any{"podGroups": map[string]any{"enabled": true}}},
		{"admission", []string{"base", "admission", "admission/only-queues", "admission/require-user", "admission/namespace-queue", "admission/bounded-pods", "admission/mutating-v1"},
			map[string]any{"admission": map[string]any{"validate": true, "onlyQueues": true, "requireUser": true, "namespaceQueue": true, "boundedPods": true, "setSchedulerName": "v1", "setUser": "v1"}}},
		{"admission of beta", []string{"base", "admission/mutating-v1beta1"},
			map[string]any{"admission": map[string]any{"setSchedulerName": "v1beta1", "setUser": "v1beta1"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := meanings(t, kustomized(t, c.dirs...))
			expect.That(t, len(want) >= 10, "there are %d objects only", len(want))
			expect.Same(t, "the chart, against the kustomization", want, meanings(t, charted(t, standard(open(c.values)))))
		})
	}
}

// TestDifferenceIsFound plants a difference in each kind of object: the
// comparison above has to see all of them.
func TestDifferenceIsFound(t *testing.T) {
	want := meanings(t, kustomized(t, "base"))
	for key, o := range charted(t, standard(open(nil))) {
		all := charted(t, standard(open(nil)))
		changed := o.DeepCopy()
		at := []string{"planted"}
		switch key.Kind {
		case "Deployment":
			at = []string{"spec", "template", "spec", "planted"}
		case "Service", "PodDisruptionBudget", "ResourceQuota":
			at = []string{"spec", "planted"}
		case "ConfigMap":
			at = []string{"data", "planted"}
		}
		expect.OK(t, unstructured.SetNestedField(changed.Object, "yes", at...))
		all[key] = changed
		expect.That(t, !cmp.Equal(want, meanings(t, all)), "a field planted in %v is not seen", key)
		delete(all, key)
		expect.That(t, !cmp.Equal(want, meanings(t, all)), "that %v is missing is not seen", key)
	}
}

// TestConfigurations shows that the configurations of the kustomizations are the
// shipped ones, but for what a pod needs.
func TestConfigurations(t *testing.T) {
	address := func(c map[string]any) {
		profile := c["profiles"].([]any)[0].(map[string]any)
		args := profile["pluginConfig"].([]any)[0].(map[string]any)["args"].(map[string]any)
		args["restAddress"] = "0.0.0.0:9080"
	}
	kubeconfig := func(c map[string]any) {
		c["clientConnection"].(map[string]any)["kubeconfig"] = "/etc/kubernetes/scheduler.conf"
	}
	for _, c := range []struct {
		shipped, used string
		change        func(map[string]any)
	}{
		{"config/second-scheduler.yaml", "base/scheduler.yaml", address},
		{"config/with-podgroups.yaml", "components/podgroups/scheduler.yaml", address},
		{"config/two-profiles.yaml", "overlays/replace-default/scheduler.yaml", kubeconfig},
		{"config/two-profiles-daemonsets.yaml", "overlays/replace-default-daemonsets/scheduler.yaml", kubeconfig},
	} {
		var want, got map[string]any
		for path, into := range map[string]*map[string]any{c.shipped: &want, c.used: &got} {
			text := expect.Get(os.ReadFile(filepath.Join(manifests, path)))(t)
			expect.OK(t, yaml.UnmarshalStrict(text, into))
		}
		expect.That(t, !cmp.Equal(want, got), "%s is %s: it needs no file of its own", c.used, c.shipped)
		c.change(want)
		expect.Same(t, c.used+", against what is shipped, changed", want, got)
	}
}

// TestOverlays says what the overlays are for, in what they do to the base.
func TestOverlays(t *testing.T) {
	kinds := func(dir string) []string {
		var out []string
		for key := range kustomized(t, dir) {
			name := key.Name
			if key.Kind == "ConfigMap" { // its end is made from the content
				name = name[:strings.LastIndexByte(name, '-')]
			}
			out = append(out, key.Kind+" "+name)
		}
		slices.Sort(out)
		return out
	}
	missing := func(dir string) []string {
		there := kinds(dir)
		return slices.DeleteFunc(kinds("base"), func(k string) bool { return slices.Contains(there, k) })
	}
	for dir, want := range map[string][]string{
		"overlays/single":                {"PodDisruptionBudget paddock-scheduler", "Role paddock-scheduler-lease", "RoleBinding paddock-scheduler-lease"},
		"overlays/ha":                    {},
		"overlays/with-podgroups":        {},
		"overlays/migrate-from-yunikorn": {"Service yunikorn-service"},
	} {
		expect.Same(t, dir+" leaves out", want, missing(dir))
	}
	want := []string{
		"ClusterRole paddock-scheduler-daemonsets", "ClusterRole paddock-scheduler-priorityclasses",
		"ClusterRoleBinding paddock-scheduler-daemonsets", "ClusterRoleBinding paddock-scheduler-priorityclasses",
		"Namespace yunikorn", "Role paddock-scheduler-queues", "RoleBinding paddock-scheduler-queues",
	}
	expect.Same(t, "overlays/replace-default has", want, kinds("overlays/replace-default"))
	// What differs is a file that is copied, not applied: TestConfigurations.
	expect.Same(t, "overlays/replace-default with daemonsets", kustomized(t, "overlays/replace-default"), kustomized(t, "overlays/replace-default-daemonsets"))
	for key, o := range kustomized(t, "overlays/replace-default") {
		subjects, bound, err := unstructured.NestedSlice(o.Object, "subjects")
		expect.OK(t, err)
		expect.That(t, !bound || len(subjects) == 1 && subjects[0].(map[string]any)["name"] == "system:kube-scheduler",
			"%v is for %v, want user system:kube-scheduler", key, subjects)
	}
}

// TestMigrationService checks what YuniKorn's own Service needs of the pods: its
// selector, and the name of the port.
func TestMigrationService(t *testing.T) {
	o := kustomized(t, "overlays/migrate-from-yunikorn")[Key{"Deployment", "yunikorn", "paddock-scheduler"}]
	labels, _, err := unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "labels")
	expect.OK(t, err)
	expect.Same(t, "app and release", []string{"yunikorn", "yunikorn"}, []string{labels["app"], labels["release"]})
	containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	expect.OK(t, err)
	port := containers[0].(map[string]any)["ports"].([]any)[0].(map[string]any)
	expect.Same(t, "port", "http1 9080", fmt.Sprint(port["name"], " ", port["containerPort"]))
}

// TestMutatingVersions: the policies of both versions are the same objects, but for
// the version; the API servers that the tests have know one of them only.
func TestMutatingVersions(t *testing.T) {
	stable, beta := kustomized(t, "admission/mutating-v1"), kustomized(t, "admission/mutating-v1beta1")
	expect.That(t, len(stable) >= 4, "there are only %d objects", len(stable))
	for key, o := range beta {
		expect.Same(t, fmt.Sprintf("version of %v", key), "admissionregistration.k8s.io/v1beta1", o.GetAPIVersion())
		o.SetAPIVersion("admissionregistration.k8s.io/v1")
	}
	expect.Same(t, "v1beta1, against v1", stable, beta)
}

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
