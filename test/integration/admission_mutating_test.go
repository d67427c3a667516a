package integration

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
)

// TestSetSchedulerName is a table of pods of two namespaces. The API server of Kubernetes
// 1.35 has the policies as a beta, which the control plane of these tests enables; the
// same objects as v1 differ only in the version.
func TestSetSchedulerName(t *testing.T) {
	applyPolicies(t, mutating(t, "paddock-scheduler-name"))
	on := newPoliced(t, "policed-on", map[string]string{"yunikorn.apache.org/namespace.enableYuniKorn": "true"})
	off := newPoliced(t, "policed-off", map[string]string{"yunikorn.apache.org/namespace.enableYuniKorn": "false"})
	none := newPoliced(t, "policed-none", nil)
	on.schedulerAccount("paddock")
	serviceAccount(t, on.ns, "robot")
	create := func(p policed, scheduler, account string, m marks) string {
		t.Helper()
		made := expect.Get(p.dryRun(suite.client, scheduler, m, func(pod *corev1.Pod) {
			pod.Spec.ServiceAccountName = account
			if m[markMirror] != "" {
				pod.Spec.NodeName = "elsewhere" // required of a mirror pod
			}
		}))(t)
		return made.Spec.SchedulerName
	}
	eventually(t, patience, "the policy is in force", func() (bool, string) {
		got := create(on, "", "", nil)
		return got == profile, got
	})
	const upstream = corev1.DefaultSchedulerName
	paddock := marks{markPaddock: "paddock"}
	for _, c := range []struct {
		name               string
		in                 policed
		scheduler, account string
		m                  marks
		want               string
	}{
		{name: "no scheduler named", in: on, want: profile},
		{name: "default-scheduler named", in: on, scheduler: upstream, want: profile},
		{name: "another one named", in: on, scheduler: "mine", want: "mine"},
		{name: "yunikorn named", in: on, scheduler: profile, want: profile},
		{name: "labels are there", in: on, m: marks{markQueue: "root.a"}, want: profile},
		{name: "the label of Paddock alone", in: on, m: paddock, want: profile},
		{name: "what says it is a mirror pod", in: on, m: marks{markMirror: "x"}, want: profile},
		{name: "Paddock itself", in: on, scheduler: upstream, account: "paddock", m: paddock, want: upstream},
		{name: "its account without the label", in: on, scheduler: upstream, account: "paddock", want: profile},
		{name: "its label, another account", in: on, scheduler: upstream, account: "robot", m: paddock, want: profile},
		{name: "switched off", in: off, want: upstream},
		{name: "not said", in: none, want: upstream},
		{name: "not said, yunikorn named", in: none, scheduler: profile, want: profile},
	} {
		expect.Same(t, c.name+": scheduler", c.want, create(c.in, c.scheduler, c.account, c.m))
	}
	expect.Same(t, "scheduler of a mirror pod", upstream, expect.Get(on.mirrorPod())(t).Spec.SchedulerName)
}

// mutating are the policies with names of this prefix, as objects of the beta API.
func mutating(t *testing.T, prefix string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, o := range installed(t, "admission-mutating.yaml") {
		expect.Same(t, "version of "+o.GetName(), admissionv1.SchemeGroupVersion.String(), o.GetAPIVersion())
		if strings.HasPrefix(o.GetName(), prefix) {
			o.SetAPIVersion("admissionregistration.k8s.io/v1beta1")
			out = append(out, o)
		}
	}
	if len(out) == 0 {
		t.Fatalf("no policy is called %s...", prefix)
	}
	return out
}

// TestSetUser is a table of requests (which account makes which object) and the user that
// the pods get. The policies that check users are also installed, and agree.
func TestSetUser(t *testing.T) {
	applyPolicies(t, slices.Concat(installed(t, "admission.yaml"), mutating(t, "paddock-set-user")))
	on := newPoliced(t, "policed-users", map[string]string{"yunikorn.apache.org/namespace.enableYuniKorn": "true"})
	off := newPoliced(t, "policed-nobody", nil)
	for _, p := range []policed{on, off} {
		for _, user := range []string{"bob", `o"dd`, "operator"} {
			p.allow(user, "admin")
		}
		p.allow("operator", "paddock-set-user")
	}
	on.awaitValidation("bob")
	for kind := range kinds {
		eventually(t, patience, "the policies for "+kind+" are in force", func() (bool, string) {
			made, err := on.ask("bob", kind, nil)
			return err == nil && made[placement.KeyUserInfo] == bobInfo, fmt.Sprint(made, err)
		})
	}
	const replicaSets = "system:serviceaccount:kube-system:replicaset-controller"
	robot := "system:serviceaccount:" + on.ns + ":robot"
	for _, c := range []struct {
		name string
		in   policed
		user string
		m    marks
		want string
	}{
		{"another namespace", off, "bob", nil, ""},
		{"a service account", on, robot, nil,
			`{"user":"` + robot + `","groups":["system:authenticated","system:serviceaccounts","system:serviceaccounts:` + on.ns + `"]}`},
		{"a controller", on, replicaSets, nil, ""},
		{"a controller, with the user of the template", on, replicaSets, marks{markInfo: aliceInfo}, aliceInfo},
		{"an operator, for somebody", on, "operator", marks{markInfo: aliceInfo}, aliceInfo},
		{"oneself, by name", on, "bob", marks{markUsername: "bob"}, bobInfo},
		{"an operator, by name", on, "operator", marks{markUsername: "alice"}, ""},
		{"a name that JSON quotes", on, `o"dd`, nil, ""},
	} {
		c.in.allow(c.user, "admin")
		var made map[string]string
		succeeds(t, c.name+": allowed", func() (err error) {
			made, err = c.in.ask(c.user, "Pod", c.m)
			return err
		})
		expect.Same(t, c.name+": user.info", c.want, made[placement.KeyUserInfo])
	}
	expect.Fails(t, on.make("bob", "Pod", marks{markInfo: aliceInfo}), "bob may not say whose pods these are")
}

// yunikornInfo is the text that YuniKorn's admission controller writes into annotation
// user.info of every object that is made: its two fields in this order, as encoding/json
// writes them, with the groups that the API server sent.
func yunikornInfo(user string, groups []string) string {
	text, _ := json.Marshal(struct { // no error, as these are strings
		User   string   `json:"user,omitempty"`
		Groups []string `json:"groups,omitempty"`
	}{user, groups})
	return string(text)
}

// checkYuniKorn is the table of a cluster in which YuniKorn's admission controller stays. It is a
// webhook: the request with its changes remains the request of the account that made it, and the
// policies see it afterwards. Pods that it makes itself are treated as those of any other account. The
// user of the table may make pods only under the user's own name.
func (p policed) checkYuniKorn(anybody string) {
	const (
		replicaSets = "system:serviceaccount:kube-system:replicaset-controller"
		mayNot      = "may not say whose pods these are"
	)
	filled := func(user string) marks { return marks{markInfo: yunikornInfo(user, groupsOf(user))} }
	expect.Same(p, "what YuniKorn writes, and the requests of all kinds had",
		bobInfo, yunikornInfo("bob", groupsOf("bob")))
	controller, robot := "system:serviceaccount:yunikorn:yunikorn-admission-controller", "system:serviceaccount:"+p.ns+":robot"
	for _, account := range []string{controller, robot} {
		p.allow(account, "admin")
		succeeds(p, account+" may make pods", func() error { return p.make(account, "Pod", nil) })
		p.expectAnswer("YuniKorn's text, by account "+account, p.make(account, "Pod", filled(account)), "")
		p.expectAnswer("YuniKorn's text, of another, by account "+account, p.make(account, "Pod", filled(anybody)), mayNot)
	}
	p.expectAnswer("YuniKorn's text in a template, of which a controller makes a pod", p.make(replicaSets, "Pod", filled(anybody)), "")
	p.expectAnswer("YuniKorn's text, of a template without a user", p.make(replicaSets, "Pod", filled(replicaSets)), "")

	groups := []string{"staff", "dev/ops", "größe", "system:authenticated"}
	of := func(groups []string, info string) error {
		_, err := p.dryRun(p.asMember(anybody, groups), profile, marks{markInfo: info})
		return err
	}
	p.expectAnswer("YuniKorn's text with more groups", of(groups, yunikornInfo(anybody, groups)), "")
	p.expectAnswer("YuniKorn's text with a group left out", of(groups, yunikornInfo(anybody, groups[1:])), mayNot)
	turned := slices.Clone(groups)
	slices.Reverse(turned)
	p.expectAnswer("YuniKorn's text with groups in another order", of(groups, yunikornInfo(anybody, turned)), mayNot)
	// JSON has more than one spelling of these.
	for _, odd := range []string{"R&D", "a<b", "a>b", `a"b`, `a\b`} {
		with := []string{odd, "system:authenticated"}
		p.expectAnswer("YuniKorn's text with group "+odd, of(with, yunikornInfo(anybody, with)), mayNot)
	}
}
