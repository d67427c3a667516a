package placement_test

import (
	"cmp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// FuzzIdentify feeds hostile metadata: nothing panics, every pod gets an
// application and a user, and a refusal has a code and a sentence. What comes
// out is placed, too, because queue and user are just as hostile there.
func FuzzIdentify(f *testing.F) {
	f.Add("ns", "uid", "", "", `{"user":"a","groups":["g"]}`, "[]", "gangSchedulingStyle=Hard", false, "", uint8(0))
	f.Add("", "", "x-uniqueautogen", "root.a.b", `{"user":""}`, `[{"name":"g"}]`, "gangSchedulingStyle", true, "root.a", uint8(7))
	f.Add("\xff", "\xff", "\xff", "ROOT.\xff", "\xff", "\xff", "\xff = \xff", true, "\xff", uint8(11))
	f.Add("ns", "u", "app", "root.@recovery@.x", `{"user":"a.b","groups":[null]}`, "null", "", false, "root.@recovery@", uint8(2))
	f.Add("ns", "u", "app", "root....", `{"user":"İ","groups":{}}`, "{}", "gangSchedulingStyle=hard gangSchedulingStyle=Soft", false, "..", uint8(13))
	tr := tree{"root": {Submit: config.ACL{Everybody: true}}, "root.a": {QueueInfo: placement.QueueInfo{Leaf: true}}}
	rules := []config.Rule{
		{Kind: config.RuleProvided, Create: true, Parent: &config.Rule{Kind: config.RuleUser, Create: true}},
		{Kind: config.RuleTag, Value: "namespace", Create: true},
	}
	f.Fuzz(func(t *testing.T, namespace, uid, app, queueName, userInfo, groups, parameters string, unique bool, parent string, where uint8) {
		pod := placement.Pod{
			Namespace: namespace, UID: uid, Labels: map[string]string{},
			Annotations: map[string]string{
				placement.KeyUserInfo: userInfo, placement.KeyTaskGroups: groups, placement.KeyPolicyParameters: parameters,
			},
		}
		// A queue and an application may be named in several places each.
		type place struct {
			in  map[string]string
			key string
		}
		queue := []place{
			{pod.Labels, placement.KeyLegacyQueue}, {pod.Labels, placement.KeyQueue}, {pod.Annotations, placement.KeyQueue},
		}[where%3]
		application := []place{
			{pod.Labels, placement.KeyApplicationID}, {pod.Labels, placement.KeyLegacyApplicationID},
			{pod.Labels, placement.KeySparkSelector}, {pod.Annotations, placement.KeyApplicationID},
		}[where/3%4]
		queue.in[queue.key], application.in[application.key] = queueName, app
		id, reason := placement.Identify(pod, unique)
		expect.That(t, id.Application != "" && id.User.Name != "" && id.Queue == queueName,
			"incomplete identity %+v", id)
		expect.That(t, app != "" || len(id.Application) <= 63, "%q is too long", id.Application)
		refused, hard := reason.Code == reasons.HardGangUnsupported, id.Gang == placement.GangHard
		expect.That(t, refused == hard || reason.Code == reasons.InvalidUserInfo, "gang %v with reason %v", id.Gang, reason)
		checkReason(t, reason)
		home := placement.Namespace{Name: namespace, Annotations: map[string]string{placement.KeyParentQueue: parent}}
		for _, running := range []bool{false, true} {
			req := placement.Request{Identity: id, Namespace: home, Running: running}
			result, reason := placement.Place(rules, req, tr)
			checkReason(t, reason)
			for name, law := range laws {
				err := law(placement.Place, problem{rules: rules, req: req, tree: tr})
				expect.That(t, err == nil, "law %q, result %+v: %v", name, result, err)
			}
		}
	})
}

// FuzzNamespaceQuota feeds hostile annotations: nothing panics, amounts are
// never negative, and an annotation that gives nothing has an error.
func FuzzNamespaceQuota(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "null", `{"cpu":"1"}`, `{"cpu":1e3,"memory":"1Ei"}`, `{"cpu":"1e-999999999"}`, `{"cpu":"9E"}`,
		`{"memory":"99999999999999999999999999999999999999Ei"}`, `{"cpu":"-0"}`, `{"cpu":"0.0000000001n"}`, `{"\u0000":"1"}`, `[{}]`,
		`{"cpu":{"cpu":1}}`, "\xff", `{"cpu":"1"}{}`, "18446744073709551616", `{"memory":"9223372036854775807"}`,
	} {
		f.Add(seed, seed, "1")
		f.Add("", "", seed)
	}
	f.Fuzz(func(t *testing.T, limit, guaranteed, single string) {
		quota, errs := placement.NamespaceQuota(map[string]string{
			placement.KeyNamespaceMax: limit, placement.KeyNamespaceGuaranteed: guaranteed,
			placement.KeyNamespaceMaxCPU: single, placement.KeyNamespaceMaxMemory: single, placement.KeyNamespaceMaxApps: single,
		})
		none := quota == nil
		quota = cmp.Or(quota, &queues.NamespaceQuota{})
		limits := !quota.Max.IsUnlimited() || !quota.Guaranteed.IsNone()
		for name, amount := range quota.Max.All() {
			expect.That(t, amount >= 0 && name != "" && name != "cpu", "max of %q is %d", name, amount)
		}
		for name, amount := range quota.Guaranteed.All() {
			expect.That(t, amount >= 0 && name != "" && name != "cpu", "guarantee of %q is %d", name, amount)
		}
		expect.That(t, none != (limits || quota.MaxApplications > 0), "no quota is %t with %+v", none, quota)
		expect.That(t, limit == "" || guaranteed == "" || limits || len(errs) >= 2,
			"two annotations without effect, but errors are %v", errs)
		for _, err := range errs {
			expect.That(t, err.Error() != "" && utf8.ValidString(err.Error()), "%q is no text", err)
		}
	})
}

func checkReason(t *testing.T, reason reasons.Reason) {
	t.Helper()
	_, known := reasons.Explain(reason.Code)
	expect.That(t, known == !reason.None(), "code %q is not in the table", reason.Code)
	expect.That(t, utf8.ValidString(reason.Text) && len(reason.Text) <= 4000,
		"sentence of %d bytes is too long or no text: %q", len(reason.Text), reason.Text)
	expect.That(t, reason.None() || strings.HasSuffix(reason.Text, "."), "sentence %q has no period", reason.Text)
}
