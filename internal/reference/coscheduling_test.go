package reference

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	coschedulingv1 "sigs.k8s.io/scheduler-plugins/apis/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/paddock-scheduler/paddock/internal/expect"
	manifests "github.com/paddock-scheduler/paddock/manifests/config"
)

// misprinted lists the arguments of Coscheduling without the right row on a page: name,
// type, default and shipped value.
func misprinted(t *testing.T, page string) []string {
	t.Helper()
	var args coschedulingv1.CoschedulingArgs
	coschedulingv1.SetDefaults_CoschedulingArgs(&args)
	var defaults map[string]any
	expect.OK(t, json.Unmarshal(expect.Get(json.Marshal(args))(t), &defaults))
	var shipped struct {
		Profiles []struct {
			PluginConfig []struct {
				Name string
				Args map[string]any
			}
		}
	}
	expect.OK(t, yaml.Unmarshal(manifests.WithPodGroups, &shipped))
	set := map[string]any{}
	for _, c := range shipped.Profiles[0].PluginConfig {
		if c.Name == "Coscheduling" {
			set = c.Args
		}
	}
	if len(set) == 0 {
		t.Fatal("the shipped configuration has no arguments of Coscheduling")
	}
	for name := range set {
		if _, known := defaults[name]; !known {
			t.Errorf("Coscheduling has no argument %s", name)
		}
	}
	var out []string
	for name, value := range defaults {
		is := "not set"
		if v, found := set[name]; found {
			is = fmt.Sprint(v)
		}
		if !strings.Contains(page, fmt.Sprintf("\n| `%s` | whole number | %v | %s | ", name, value, is)) {
			out = append(out, fmt.Sprintf("%s: default %v, shipped: %s", name, value, is))
		}
	}
	return out
}

func TestArgumentsOfCoscheduling(t *testing.T) {
	page := readPage(t)
	for _, wrong := range misprinted(t, page) {
		t.Errorf("the page lacks %s", wrong)
	}
	// The check finds a planted difference.
	expect.Same(t, "wrong rows", 1, len(misprinted(t, strings.Replace(page, "| 10 | 0 |", "| 10 | 10 |", 1))))
}
