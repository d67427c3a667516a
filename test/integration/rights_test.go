package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// audited is the group of users that are no service accounts and are audited, too.
const audited = "audited"

// auditPolicy makes the API server log all requests of service accounts before it
// answers, except those of controllers.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  userGroups: ["system:serviceaccounts:kube-system"]
- level: Metadata
  userGroups: ["system:serviceaccounts", ` + audited + `]
- level: None
`

// auditArgs writes the policy, and returns the API server's flags for it.
func auditArgs(dir string) ([]string, error) {
	suite.audit = filepath.Join(dir, "audit.log")
	policy := filepath.Join(dir, "audit-policy.yaml")
	return []string{"--audit-policy-file=" + policy, "--audit-log-path=" + suite.audit}, os.WriteFile(policy, []byte(auditPolicy), 0o600)
}

// accountsOf is the prefix of the user names of a namespace's service accounts.
func accountsOf(namespace string) string { return "system:serviceaccount:" + namespace + ":" }

// asked returns the requests to the API server of users with names of this prefix.
func asked(t *testing.T, users string) []auditv1.Event {
	t.Helper()
	log := expect.Get(os.ReadFile(suite.audit))(t)
	var out []auditv1.Event
	for line := range bytes.Lines(log) {
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			continue // the last line, which is still being written
		}
		if strings.HasPrefix(event.User.Username, users) {
			out = append(out, event)
		}
	}
	return out
}

// right is one verb of one of our rules, for one kind of object; name is empty if the
// rule names none, and namespace if it holds in all.
type right struct {
	role, namespace, verb, group, resource, name string
}

// bound is one of our roles that the service account has, and the namespace in which it
// holds; empty means all.
type bound struct {
	role, namespace string
	rules           []rbacv1.PolicyRule
}

// boundRoles returns the roles that bindings among the objects bind, and the names of
// bound roles of the API server.
func boundRoles(t *testing.T, objects []*unstructured.Unstructured) (ours []bound, upstream []string) {
	t.Helper()
	for _, binding := range objects {
		kind, _, _ := unstructured.NestedString(binding.Object, "roleRef", "kind")
		name, found, _ := unstructured.NestedString(binding.Object, "roleRef", "name")
		if !found {
			continue
		}
		i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool {
			return o.GetKind() == kind && o.GetName() == name && o.GetNamespace() == binding.GetNamespace()
		})
		if i < 0 {
			upstream = append(upstream, name)
			continue
		}
		var role rbacv1.ClusterRole // the rules of a Role are in the same place
		expect.OK(t, runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, &role))
		ours = append(ours, bound{name, binding.GetNamespace(), role.Rules})
	}
	return ours, upstream
}

// rights are all rights of a role, one by one.
func (b bound) rights() (all []right) {
	for _, rule := range b.rules {
		for _, one := range validation.BreakdownRule(rule) {
			if len(one.Resources) > 0 {
				name := strings.Join(one.ResourceNames, "") // at most one
				all = append(all, right{b.role, b.namespace, one.Verbs[0], one.APIGroups[0], one.Resources[0], name})
			}
		}
	}
	return all
}

// usedBy tells whether a request was allowed by this right.
func (r right) usedBy(event *auditv1.Event) bool {
	o := event.ObjectRef
	return o != nil && event.Verb == r.verb && o.APIGroup == r.group && o.Resource == r.resource && o.Subresource == "" &&
		(r.namespace == "" || o.Namespace == r.namespace) && (r.name == "" || o.Name == r.name) && allowedBy(event, r.role)
}

// allowedBy tells whether a role is the recorded reason for which a request was allowed.
// That is never our role if one of upstream's, with a binding of the same kind, allows
// the same.
func allowedBy(event *auditv1.Event, role string) bool {
	return event.Annotations["authorization.k8s.io/decision"] == "allow" &&
		strings.Contains(event.Annotations["authorization.k8s.io/reason"], fmt.Sprintf("Role %q", role))
}

// superfluous returns the rights that no request needed, and the upstream roles that no
// request needed.
func superfluous(events []auditv1.Event, ours []bound, upstream []string) []string {
	var out []string
	for _, b := range ours {
		for _, r := range b.rights() {
			if !slices.ContainsFunc(events, func(e auditv1.Event) bool { return r.usedBy(&e) }) {
				out = append(out, fmt.Sprintf("%+v", r))
			}
		}
	}
	for _, role := range upstream {
		if !slices.ContainsFunc(events, func(e auditv1.Event) bool { return allowedBy(&e, role) }) {
			out = append(out, role)
		}
	}
	return out
}

// checkRights checks the requests of an installation's service account: none was refused,
// and each right was used. With a role, it checks the rights of that role only, because a
// test that does less needs less.
func checkRights(t *testing.T, i installation, role string) {
	t.Helper()
	events := asked(t, accountsOf(i.namespace))
	checkNothingForbidden(t, events)
	ours, upstream := boundRoles(t, i.objects)
	expect.That(t, len(ours) >= 3 && len(upstream) == 3,
		"bound are %d roles of ours and %q", len(ours), upstream)
	if role != "" {
		upstream = nil
		ours = slices.DeleteFunc(ours, func(b bound) bool { return !strings.HasSuffix(b.role, role) })
	}
	checkNeeded(t, events, ours, upstream)
}

// checkNothingForbidden checks that there were requests, and that none was refused.
func checkNothingForbidden(t *testing.T, events []auditv1.Event) {
	t.Helper()
	expect.That(t, len(events) != 0, "the API server has written nothing down")
	for _, e := range events {
		expect.That(t, e.Annotations["authorization.k8s.io/decision"] != "forbid",
			"the API server refused %s %s", e.Verb, e.RequestURI)
	}
}

// checkNeeded checks that each right was used.
func checkNeeded(t *testing.T, events []auditv1.Event, ours []bound, upstream []string) {
	t.Helper()
	for _, r := range superfluous(events, ours, upstream) {
		t.Errorf("nothing needs %s: remove it", r)
	}
	if t.Failed() {
		return
	}
	// The check finds two planted rights.
	planted := bound{ours[0].role, ours[0].namespace, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}}}
	found := superfluous(events, append(ours, planted), append(upstream, "system:node"))
	expect.That(t, len(found) == 2, "of two rights that are not needed are found %q", found)
}
