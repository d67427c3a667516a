package render

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// source is a pod that sends, or an address outside of the pods.
type source struct {
	namespace string
	labels    map[string]string
	address   string
}

// matches is the answer of a label selector; nil matches nothing.
func matches(t *testing.T, s *metav1.LabelSelector, of map[string]string) bool {
	t.Helper()
	selector := expect.Get(metav1.LabelSelectorAsSelector(s))(t)
	return selector.Matches(labels.Set(of))
}

// admits tells whether a policy lets a source reach a port, by the rules of NetworkPolicy.
func admits(t *testing.T, p *networkingv1.NetworkPolicy, from source, port int) bool {
	t.Helper()
	peer := func(of networkingv1.NetworkPolicyPeer) bool {
		if of.IPBlock != nil {
			return from.address != "" && of.IPBlock.CIDR == from.address+"/32"
		}
		inside := from.namespace == p.Namespace
		if of.NamespaceSelector != nil {
			inside = matches(t, of.NamespaceSelector, map[string]string{corev1.LabelMetadataName: from.namespace})
		}
		return from.address == "" && inside && (of.PodSelector == nil || matches(t, of.PodSelector, from.labels))
	}
	for _, rule := range p.Spec.Ingress {
		there := false
		for _, allowed := range rule.Ports {
			there = there || allowed.Port.IntValue() == port && (allowed.Protocol == nil || *allowed.Protocol == corev1.ProtocolTCP)
		}
		anyone := len(rule.From) == 0
		for _, of := range rule.From {
			anyone = anyone || peer(of)
		}
		if there && anyone {
			return true
		}
	}
	return false
}

// typed converts an object, with no field that its type does not have.
func typed[T any](t *testing.T, o *unstructured.Unstructured) *T {
	t.Helper()
	out := new(T)
	expect.OK(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, out, true))
	return out
}

// reached are the policy and the pod template of an installation; the policy selects the pods.
func reached(t *testing.T, all map[Key]*unstructured.Unstructured) (*networkingv1.NetworkPolicy, *corev1.PodTemplateSpec) {
	t.Helper()
	var policy *networkingv1.NetworkPolicy
	var template *corev1.PodTemplateSpec
	for key, o := range all {
		switch key.Kind {
		case "NetworkPolicy":
			policy = typed[networkingv1.NetworkPolicy](t, o)
		case "Deployment":
			template = &typed[appsv1.Deployment](t, o).Spec.Template
		}
	}
	if policy == nil || template == nil {
		t.Fatalf("there is no policy (%t) or no Deployment (%t)", policy == nil, template == nil)
	}
	expect.That(t, matches(t, &policy.Spec.PodSelector, template.Labels),
		"the policy is for pods %v, those of the Deployment have %v", policy.Spec.PodSelector, template.Labels)
	return policy, template
}

// What a NetworkPolicy of an installation lets through: to REST its own namespace,
// kube-system and what is named; to the port of probes and metrics everything.
func TestNetworkPolicy(t *testing.T) {
	tenant := source{namespace: "tenant", labels: map[string]string{"app": "dashboard"}}
	named := map[string]any{"networkPolicy": map[string]any{"restFrom": []any{
		map[string]any{
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{corev1.LabelMetadataName: "monitoring"}},
			"podSelector":       map[string]any{"matchLabels": map[string]any{"app": "dashboard"}},
		},
		map[string]any{"ipBlock": map[string]any{"cidr": "10.0.0.10/32"}},
	}}, "service": map[string]any{"port": 9443}}
	for name, c := range map[string]struct {
		all  map[Key]*unstructured.Unstructured
		more bool // what restFrom names
	}{
		"base":     {kustomized(t, "base"), false},
		"single":   {kustomized(t, "overlays/single"), false},
		"ha":       {kustomized(t, "overlays/ha"), false},
		"groups":   {kustomized(t, "overlays/with-podgroups"), false},
		"migrate":  {kustomized(t, "overlays/migrate-from-yunikorn"), false},
		"chart":    {charted(t, Release{Name: "second", Namespace: "yunikorn"}), false},
		"restFrom": {charted(t, standard(named)), true},
	} {
		t.Run(name, func(t *testing.T) {
			policy, template := reached(t, c.all)
			container := &template.Spec.Containers[0]
			ports := map[string]int{}
			for _, p := range container.Ports {
				if p.ContainerPort == 10259 {
					ports["metrics"] = 10259
				} else {
					ports["rest"] = int(p.ContainerPort)
				}
			}
			if len(ports) != 2 || len(container.Ports) != 2 {
				t.Fatalf("ports %v", container.Ports)
			}
			for _, from := range []struct {
				source
				rest bool
			}{
				{tenant, false},
				{source{namespace: "default"}, false},
				{source{namespace: "monitoring", labels: map[string]string{"app": "other"}}, false},
				{source{namespace: "monitoring", labels: tenant.labels}, c.more},
				{source{address: "10.0.0.10"}, c.more},
				{source{address: "192.0.2.1"}, false},
				{source{namespace: "yunikorn", labels: tenant.labels}, true},
				{source{namespace: "kube-system"}, true},
			} {
				expect.Same(t, fmt.Sprint(from.source)+" reaches REST", from.rest, admits(t, policy, from.source, ports["rest"]))
				expect.That(t, admits(t, policy, from.source, ports["metrics"]),
					"%+v does not reach metrics and probes", from.source)
				expect.That(t, !admits(t, policy, from.source, 22),
					"%+v reaches a port at which nothing listens", from.source)
			}
		})
	}
}
