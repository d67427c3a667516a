package render

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
	"sigs.k8s.io/yaml"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// profiles are those of a configuration of the scheduler, by name.
func profiles(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var configuration struct {
		Profiles []map[string]any `json:"profiles"`
	}
	expect.OK(t, yaml.Unmarshal(text, &configuration))
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
	text := expect.Get(os.ReadFile(filepath.Join(manifests, "config/two-profiles-daemonsets.yaml")))(t)
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
	expect.Same(t, "yunikorn with daemonSetProfile", before["yunikorn"], got["yunikorn"])
	expect.Same(t, "profiles without and with daemonSetProfile", []int{1, 2}, []int{len(before), len(got)})
	want := shipped["default-scheduler"].(map[string]any)
	want["pluginConfig"] = before["yunikorn"].(map[string]any)["pluginConfig"]
	expect.Same(t, "the profile for DaemonSets", want, got["agents"])
	// A configuration of one's own says all profiles.
	values["schedulerConfig"] = "{restAuthorization: Delegated, restTLSCertFile: x, daemonSetNamespaces: [monitoring], maxDynamicQueues: 7}"
	expect.Refused(Chart(chartDir, standard(values)))(t, "daemonSetProfile is agents")
}

// TestArguments: values that are arguments of the scheduler have its defaults, by
// docs/configuration.md, and with schedulerConfig they are refused unless it has them, too.
func TestArguments(t *testing.T) {
	page := expect.Get(os.ReadFile("../../../docs/configuration.md"))(t)
	chart := expect.Get(loader.LoadDir(chartDir))(t)
	for name, other := range map[string]any{
		"holdTaint": "Never", "maxVictimGrace": "10m", "daemonSetNamespaces": []any{"monitoring"}, "daemonSetOwner": "Claimed",
		"maxDynamicQueues": 7, "maxDynamicQueuesPerNamespace": 7,
	} {
		is := fmt.Sprint(chart.Values[name])
		if is == "" || is == "[]" {
			is = "none, "
		}
		row := regexp.MustCompile("(?m)^\\| `" + name + "` \\| [^|]* \\| " + is)
		expect.That(t, row.Match(page),
			"docs/configuration.md does not say that the default of %s is %q", name, is)
		values := open(map[string]any{name: other, "schedulerConfig": "profiles: []"})
		expect.Refused(Chart(chartDir, standard(values)))(t, name+" is set, and schedulerConfig does not have it")
		values["schedulerConfig"] = fmt.Sprintf("%s: {{ toJson .Values.%s }}", name, name)
		expect.Get(Chart(chartDir, standard(values)))(t)
	}
}

// TestOwnConfiguration: what the values ask of the configuration is refused where schedulerConfig does
// not have it as a key; in a comment, or as a part of another key or name, it is not there.
func TestOwnConfiguration(t *testing.T) {
	for _, c := range []struct {
		values map[string]any
		lines  string // of schedulerConfig
		says   string // no error if empty
	}{
		{nil, "", "rest.authorization is Delegated, and schedulerConfig does not have it: set restAuthorization: Delegated, too, in the arguments of QueueSort"},
		{nil, "# restAuthorization: Delegated", "rest.authorization"},
		{nil, "restAuthorization: None", "rest.authorization"},
		{nil, "restAuthorization: Delegated", ""},
		{nil, `restAuthorization: "Delegated" # for a token`, ""},
		{nil, "args: {restHosts: [a], restAuthorization: Delegated}", ""},
		{open(nil), "", ""},
		{open(nil), "profiles: [", "schedulerConfig is not YAML: "},
		{open(nest("service.name", "queues")), "", "rest.hosts or service.name has a name for REST, and schedulerConfig does not have it: set restHosts: [queues], too"},
		{map[string]any{"rest": map[string]any{"authorization": "None", "tlsSecret": "mine"}}, "restTLSKeyFile: x", "rest.tlsSecret is mine, and schedulerConfig does not have it: set restTLSCertFile"},
		{map[string]any{"rest": map[string]any{"authorization": "None", "tlsSecret": "mine"}}, "restTLSCertFile: x", ""},
		{map[string]any{"rest": map[string]any{"authorization": "None", "hosts": []any{"a"}}}, "restHost: [a]", "rest.hosts"},
		{map[string]any{"rest": map[string]any{"authorization": "None", "hosts": []any{"a"}}}, "restHosts: [a]", ""},
		{open(nest("podGroups.enabled", true)), "restHosts: []", "podGroups.enabled is true, and schedulerConfig does not have it: set Coscheduling, too, in the plugins of the profile"},
		{open(nest("podGroups.enabled", true)), "# - name: Coscheduling", "podGroups.enabled"},
		{open(nest("podGroups.enabled", true)), "preFilter: {enabled: [{name: Coscheduling}, {name: QueuePreemption}]}", ""},
		{open(nest("podGroups.enabled", true)), "preFilter:\n  enabled:\n  - name: Coscheduling", ""},
		{open(nest("maxDynamicQueues", 7)), "maxDynamicQueuesPerNamespace: 7", "maxDynamicQueues is set"},
		{open(nest("maxDynamicQueues", 7)), "x: 1 # maxDynamicQueues: 7", "maxDynamicQueues is set"},
		{open(nest("maxDynamicQueues", 7)), "pluginConfig:\n- args:\n    maxDynamicQueues: 7", ""},
		{open(nest("maxDynamicQueues", 7)), `args: {restAddress: "a#b", "maxDynamicQueues": 7}`, ""},
	} {
		values := maps.Clone(c.values)
		if values == nil {
			values = map[string]any{}
		}
		values["schedulerConfig"] = "profiles: []\n" + c.lines + "\n"
		_, err := Chart(chartDir, standard(values))
		expect.That(t, (err == nil) == (c.says == "") && strings.Contains(fmt.Sprint(err), c.says),
			"%v beside schedulerConfig with %q: got error %v, want one with %q", c.values, c.lines, err, c.says)
	}
}

// rows are the files of values that test/integration/docs brings before an API server, by name.
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

// flat lists what values set, by path, down to what has no keys or keys that the user chooses.
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
	left := unset(t, all)
	expect.That(t, len(left) == 0,
		"no file of manifests/chart/ci sets %q to something else than values.yaml", left)
	before := charted(t, standard(nil))
	for name, values := range all {
		expect.That(t, !cmp.Equal(before, charted(t, standard(values))), "%s changes nothing", name)
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
