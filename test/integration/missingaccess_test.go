package integration

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// change modifies an installation.
type change func([]*unstructured.Unstructured) []*unstructured.Unstructured

// missing is an installation that lacks one thing, and the log line about it.
type missing struct {
	name   string
	change change
	says   string
}

// withoutRule removes the i-th rule of a role.
func withoutRule(role string, i int) change {
	return func(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
		for _, o := range objects {
			if rules, found, _ := unstructured.NestedSlice(o.Object, "rules"); found && strings.HasSuffix(o.GetName(), role) {
				o.Object["rules"] = slices.Delete(rules, i, i+1)
			}
		}
		return objects
	}
}

// withoutBinding removes a binding.
func withoutBinding(name string) change {
	return func(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
		return slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
			return strings.HasSuffix(o.GetKind(), "Binding") && strings.HasSuffix(o.GetName(), name)
		})
	}
}

// eachMissing lists the shipped installation without each of our rules, and without each
// right of upstream's roles, one of which is patching the status of pods.
func eachMissing(t *testing.T) []missing {
	t.Helper()
	// This installation has all the rules of the others, as a test beside the manifests
	// shows.
	ours, _ := boundRoles(t, installed(t, "second-scheduler.yaml"))
	var out []missing
	for _, b := range ours {
		for i, rule := range b.rules {
			says := strings.TrimSuffix(rule.Resources[0]+"."+rule.APIGroups[0], ".")
			out = append(out, missing{fmt.Sprintf("%s-%d", strings.TrimPrefix(b.role, "paddock-scheduler-"), i), withoutRule(b.role, i), says})
		}
	}
	return append(out,
		missing{"authentication", withoutBinding("paddock-scheduler-authentication"), "extension-apiserver-authentication"},
		missing{"status", func(objects []*unstructured.Unstructured) []*unstructured.Unstructured { return lessStatus(t, objects) }, "pods/status"},
	)
}

// TestMissingAccessIsFound removes one rule at a time: the log, which the tests of access
// check, says that something is forbidden. Without the right to read PodGroups, if they
// are enabled, a scheduler never becomes ready; [TestPodGroups] shows that it needs that
// right.
func TestMissingAccessIsFound(t *testing.T) {
	all := eachMissing(t)
	if len(all) != 7 {
		t.Errorf("without each one there are %d, want 7", len(all))
	}
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			lacking := newInstallation(t, "second-scheduler.yaml", c.name)
			lacking.objects = c.change(lacking.objects)
			e := setup(t, "", lacking.run(t), func(s *settings) { s.refused = true })
			e.configure(installLife)
			switch c.name {
			case "status":
				e.awaitLeader("")
				e.create("capped", 2, inQueue("root.capped"))
			case "holds-0":
				e.awaitLeader("")
				e.lifeOfPreemption() // room is made without the taint
			}
			eventually(t, patience, "the log says what is forbidden", func() (bool, string) {
				line, _ := e.logLine("forbidden")
				return len(e.logLines("forbidden", c.says)) > 0, line
			})
		})
	}
}

// lessStatus replaces the binding of upstream's role by one of a copy that may not patch
// the status of pods.
func lessStatus(t *testing.T, objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	role, err := suite.client.RbacV1().ClusterRoles().Get(t.Context(), "system:kube-scheduler", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(t.Name()) + "-less"
	less := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, rule := range role.Rules {
		if rule.Resources = slices.DeleteFunc(slices.Clone(rule.Resources), func(r string) bool { return r == "pods/status" }); len(rule.Resources) > 0 {
			less.Rules = append(less.Rules, rule)
		}
	}
	if _, err := suite.client.RbacV1().ClusterRoles().Create(t.Context(), less, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := suite.client.RbacV1().ClusterRoles().Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	for _, o := range objects {
		if of, _, _ := unstructured.NestedString(o.Object, "roleRef", "name"); of == "system:kube-scheduler" {
			_ = unstructured.SetNestedField(o.Object, name, "roleRef", "name") // there is a roleRef
		}
	}
	return objects
}
