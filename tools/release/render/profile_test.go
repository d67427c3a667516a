package render

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
	"sigs.k8s.io/yaml"
)

// profiles are those of a configuration of the scheduler, by name.
func profiles(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var configuration struct {
		Profiles []map[string]any `json:"profiles"`
	}
	if err := yaml.Unmarshal(text, &configuration); err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	for _, p := range configuration.Profiles {
		name := p["schedulerName"].(string)
		delete(p, "schedulerName")
		out[name] = p
	}
	return out
}

// The profile for DaemonSets that the chart adds is that of default-scheduler in
// config/two-profiles-daemonsets.yaml, and the one of queues stays as it is.
func TestDaemonSetProfile(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(manifests, "config/two-profiles-daemonsets.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	shipped := profiles(t, text)
	configOf := func(values map[string]any) map[string]any {
		o := charted(t, standard(values))[Key{"ConfigMap", "yunikorn", "paddock-scheduler"}]
		return profiles(t, []byte(o.Object["data"].(map[string]any)["scheduler.yaml"].(string)))
	}
	// With all that changes the arguments, which have to be the same in both.
	values := map[string]any{
		"service":             map[string]any{"port": 9443},
		"rest":                map[string]any{"tlsSecret": "mine", "authorization": "Delegated"},
		"daemonSetNamespaces": []any{"monitoring"},
		"maxDynamicQueues":    7,
	}
	before := configOf(values)
	values["daemonSetProfile"] = "agents"
	got := configOf(values)
	if diff := cmp.Diff(before["yunikorn"], got["yunikorn"]); diff != "" || len(before) != 1 || len(got) != 2 {
		t.Errorf("profiles %d, %d; yunikorn (-without +with daemonSetProfile):\n%s", len(before), len(got), diff)
	}
	want := shipped["default-scheduler"].(map[string]any)
	want["pluginConfig"] = before["yunikorn"].(map[string]any)["pluginConfig"]
	if diff := cmp.Diff(want, got["agents"]); diff != "" {
		t.Errorf("the profile for DaemonSets (-shipped +chart):\n%s", diff)
	}
	// A configuration of one's own says all profiles.
	values["schedulerConfig"] = "profiles: []"
	if _, err := Chart(chartDir, standard(values)); err == nil {
		t.Error("daemonSetProfile beside schedulerConfig is accepted")
	}
}

// TestArguments: values that are arguments of the scheduler have its defaults, by
// docs/configuration.md, and with schedulerConfig they are refused unless it has them, too.
func TestArguments(t *testing.T) {
	page, err := os.ReadFile("../../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	chart, err := loader.LoadDir(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string]any{
		"holdTaint": "Never", "maxVictimGrace": "10m", "daemonSetNamespaces": []any{"monitoring"}, "daemonSetOwner": "Claimed",
		"maxDynamicQueues": 7, "maxDynamicQueuesPerNamespace": 7,
	} {
		is := fmt.Sprint(chart.Values[name])
		if is == "" || is == "[]" {
			is = "none, "
		}
		if row := regexp.MustCompile("(?m)^\\| `" + name + "` \\| [^|]* \\| " + is); !row.Match(page) {
			t.Errorf("docs/configuration.md does not say that the default of %s is %q", name, is)
		}
		values := map[string]any{name: other, "schedulerConfig": "profiles: []"}
		if _, err := Chart(chartDir, standard(values)); err == nil || !strings.Contains(err.Error(), name+" is set, and schedulerConfig does not have it") {
			t.Errorf("%s beside schedulerConfig without it: got error %v", name, err)
		}
		values["schedulerConfig"] = fmt.Sprintf("%s: {{ toYaml .Values.%s }}", name, name)
		if _, err := Chart(chartDir, standard(values)); err != nil {
			t.Errorf("%s beside schedulerConfig with it: %v", name, err)
		}
	}
}
