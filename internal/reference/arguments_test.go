package reference

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	coschedulingv1 "sigs.k8s.io/scheduler-plugins/apis/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/internal/expect"
	manifests "github.com/paddock-scheduler/paddock/manifests/config"
)

// defaulted are the arguments with their defaults.
func defaulted(t *testing.T) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for plugin, args := range map[string]interface{ SetDefaults() }{
		"QueueSort": &config.QueueSortArgs{}, "QueuePreemption": &config.QueuePreemptionArgs{},
		"NodeReservation": &config.NodeReservationArgs{},
	} {
		args.SetDefaults()
		var fields map[string]any
		expect.OK(t, json.Unmarshal(expect.Get(json.Marshal(args))(t), &fields))
		out[plugin] = fields
	}
	return out
}

// written is the form in which a comment writes a value.
func written(value any) string {
	switch v := value.(type) {
	case nil, []any:
		return strings.ReplaceAll(strings.ReplaceAll(fmt.Sprint(v), "<nil>", "none"), " ", ", ")
	case string:
		if v == "" {
			return "none"
		}
		return strings.ReplaceAll(v, "m0s", "m")
	}
	return fmt.Sprint(value)
}

// first is the default in a comment, without the remarks on it.
func first(text string) string {
	value, _, _ := strings.Cut(text, ", which means")
	value, _, _ = strings.Cut(value, ", ")
	return value
}

// wrongDefaults lists arguments with a comment that differs from the code.
func wrongDefaults(arguments []Arguments, real map[string]map[string]any) []string {
	var out []string
	for _, a := range arguments {
		for _, f := range a.Fields {
			if f.Name == "configNamespace" {
				continue // it depends on the environment, as its comment says
			}
			if want := written(real[a.Plugin][f.Name]); first(f.Default) != want {
				out = append(out, fmt.Sprintf("%s.%s: default %q, but it is %q", a.Plugin, f.Name, f.Default, want))
			}
		}
	}
	return out
}

func TestDefaultsAreThoseOfTheCode(t *testing.T) {
	arguments := expect.Get(ReadArguments(typesPath))(t)
	real := defaulted(t)
	expect.Same(t, "wrong defaults", []string(nil), wrongDefaults(arguments, real))
	known := 0
	for _, a := range arguments {
		known += len(a.Fields)
		for _, f := range a.Fields {
			expect.That(t, f.Type != "" && !strings.HasSuffix(f.Type, " "),
				"%s.%s has a type without words", a.Plugin, f.Name)
		}
		for name := range real[a.Plugin] {
			expect.That(t, slices.ContainsFunc(a.Fields, func(f Field) bool { return f.Name == name }),
				"%s.%s is not on the page", a.Plugin, name)
		}
	}
	expect.That(t, len(arguments) == 3 && known >= 20, "%d arguments, %d plugins", known, len(arguments))
	// The check finds a planted difference.
	arguments[0].Fields[3].Default = "65"
	expect.Same(t, "wrong defaults", 1, len(wrongDefaults(arguments, real)))
}

func TestFieldsThatSayTooLittle(t *testing.T) {
	read := func(comment string) string {
		path := filepath.Join(t.TempDir(), "types.go")
		source := "package p\n\n// XArgs are arguments.\ntype XArgs struct {\n" + comment + "\tA *int32 `json:\"a,omitempty\"`\n}\n"
		expect.OK(t, os.WriteFile(path, []byte(source), 0o600))
		got, err := ReadArguments(path)
		if err != nil {
			_, text, _ := strings.Cut(err.Error(), "types.go: ")
			return text
		}
		return fmt.Sprintf("%+v", got)
	}
	for comment, want := range map[string]string{
		"":                      "XArgs.A: has no comment",
		"\t// A is a number.\n": `XArgs.A: its comment has no sentence that begins with "Default: "`,
		"\t// Default: 3.\n":    "XArgs.A: its comment does not say what it means",
		"\t// A is the number,\n\t// in pods. Default: 3. Bounds: 1 to 5.\n": "[{Plugin:X About:XArgs are arguments. Fields:[{Name:a Type:whole number Default:3 Bounds:1 to 5 Meaning:The number, in pods.}]}]",
	} {
		expect.Same(t, fmt.Sprintf("%q", comment), want, read(comment))
	}
}

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
		_, known := defaults[name]
		expect.That(t, known, "Coscheduling has no argument %s", name)
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
	expect.Same(t, "rows that the page lacks", []string(nil), misprinted(t, page))
	// The check finds a planted difference.
	expect.Same(t, "wrong rows", 1, len(misprinted(t, strings.Replace(page, "| 10 | 0 |", "| 10 | 10 |", 1))))
}
