package rest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// unlike says where what a YuniKorn at work answered is not in the contract, or is of
// another type there. Observed are the types that JSON knows, by kind of object and
// field. What is in the contract is served or has a reason in leftOut, by TestContract.
func unlike(contract, observed map[string]any) []string {
	var out []string
	for kind, fields := range observed {
		known, _ := contract[kind].(map[string]any)
		for name, is := range fields.(map[string]any) {
			of, there := known[name].(string)
			switch {
			case !there:
				out = append(out, fmt.Sprintf("%s.%s: not in the contract", kind, name))
			case kindOfJSON(of) != is:
				out = append(out, fmt.Sprintf("%s.%s: %s is a %s, YuniKorn answers a %s", kind, name, of, kindOfJSON(of), is))
			}
		}
	}
	slices.Sort(out)
	return out
}

// kindOfJSON is what JSON calls a type of the contract.
func kindOfJSON(of string) string {
	switch {
	case strings.HasPrefix(of, "list of "):
		return "list"
	case of == "string" || of == "number" || of == "bool":
		return of
	}
	return "object"
}

// TestContractHasWhatWasObserved: testdata/observed.json has each field, with its type,
// of the answers of a YuniKorn 1.9.0 with queues, users, DaemonSets and preemption. What
// it did not have, such as pods of other schedulers, the contract has from YuniKorn's
// source only.
func TestContractHasWhatWasObserved(t *testing.T) {
	contract, observed := readJSON(t, "testdata/contract.json"), readJSON(t, "testdata/observed.json")
	for _, text := range unlike(contract, observed) {
		t.Error(text)
	}
	neverObserved := []string{"configLimit", "filter", "foreign", "group", "log", "request", "stream", "template"}
	if missing := slices.DeleteFunc(slices.Sorted(maps.Keys(contract)), func(kind string) bool { return observed[kind] != nil }); !slices.Equal(missing, neverObserved) {
		t.Errorf("not observed are %q, want %q", missing, neverObserved)
	}
	fields := 0
	for _, of := range observed {
		fields += len(of.(map[string]any))
	}
	if fields < 150 {
		t.Errorf("only %d fields were observed", fields)
	}
	for name, spoil := range map[string]func(){
		"queue.new: not in the contract":                                func() { observed["queue"].(map[string]any)["new"] = "string" },
		"new.field: not in the contract":                                func() { observed["new"] = map[string]any{"field": "string"} },
		"node.nodeID: string is a string, YuniKorn answers a number":    func() { observed["node"].(map[string]any)["nodeID"] = "number" },
		"queue.children: list of queue is a list, YuniKorn answers a s": func() { observed["queue"].(map[string]any)["children"] = "string" },
	} {
		observed = readJSON(t, "testdata/observed.json")
		if spoil(); len(unlike(contract, observed)) != 1 || !strings.HasPrefix(unlike(contract, observed)[0], name) {
			t.Errorf("%s: found %q", name, unlike(contract, observed))
		}
	}
}
