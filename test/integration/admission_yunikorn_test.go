package integration

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// yunikornInfo is the text that YuniKorn's admission controller writes into annotation
// user.info of every object that is made: its two fields in this order, as encoding/json
// writes them, with the groups that the API server sent.
func yunikornInfo(user string, groups []string) string {
	text, err := json.Marshal(struct {
		User   string   `json:"user,omitempty"`
		Groups []string `json:"groups,omitempty"`
	}{user, groups})
	if err != nil {
		panic(err) // encoding strings
	}
	return string(text)
}

// checkYuniKorn is the table of a cluster in which YuniKorn's admission controller stays.
// It is a webhook: the request with its changes remains the request of the account that
// made it, and the policies see it afterwards. Pods that it makes itself are treated as
// those of any other account. The user of the table may make pods only under the user's
// own name.
func (p policed) checkYuniKorn(anybody string) {
	p.Helper()
	const (
		replicaSets = "system:serviceaccount:kube-system:replicaset-controller"
		mayNot      = "may not say whose pods these are"
	)
	filled := func(user string) marks { return marks{markInfo: yunikornInfo(user, groupsOf(user))} }
	for _, kind := range kinds {
		p.expectAnswer("YuniKorn's text, "+kind+" of oneself", p.make(anybody, kind, filled(anybody)), "")
		p.expectAnswer("YuniKorn's text, "+kind+" of another", p.make(anybody, kind, filled("alice")), mayNot)
	}
	controller, robot := "system:serviceaccount:yunikorn:yunikorn-admission-controller", "system:serviceaccount:"+p.ns+":robot"
	for _, account := range []string{controller, robot} {
		p.allow(account, "admin")
		eventually(p, patience, account+" may make pods", func() (bool, string) {
			err := p.make(account, "Pod", nil)
			return err == nil, fmt.Sprint(err)
		})
		p.expectAnswer("YuniKorn's text, by account "+account, p.make(account, "Pod", filled(account)), "")
		p.expectAnswer("YuniKorn's text, of another, by account "+account, p.make(account, "Pod", filled(anybody)), mayNot)
	}
	p.expectAnswer("YuniKorn's text in a template, of which a controller makes a pod", p.make(replicaSets, "Pod", filled(anybody)), "")
	p.expectAnswer("YuniKorn's text, of a template without a user", p.make(replicaSets, "Pod", filled(replicaSets)), "")

	groups := []string{"staff", "dev/ops", "größe", "system:authenticated"}
	of := func(groups []string, info string) error {
		pod := &corev1.Pod{ObjectMeta: marks{markInfo: info}.meta(), Spec: podSpec(profile)}
		pod.Name = "x"
		_, err := p.asMember(anybody, groups).CoreV1().Pods(p.ns).Create(p.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
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
