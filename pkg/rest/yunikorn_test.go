package rest

import (
	"cmp"
	"net/http"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// TestNamesAreDecodedOnceMore: YuniKorn's clients encode names twice. A name counts as it
// came where something has it.
func TestNamesAreDecodedOnceMore(t *testing.T) {
	const valid = "partitions:\n- name: default\n  queues:\n  - name: root\n    submitacl: \"*\"\n    queues:\n" +
		"    - name: a/b\n      limits: [{groups: [\"dev:ops\"], maxapplications: 3}]\n    - name: \"c#d\"\n"
	c := newCluster(t, valid)
	c.does(t, `
		pod name=p queue=root.a/b app=app request=vcore=1 node=n1 user=a/b groups=dev:ops
		pod name=p2 queue=root.c#d app=app2 request=vcore=1 node=n1 user=a%2Fb
	`)
	for path, want := range map[string]string{
		"queue/root.a%2Fb":                   `"queuename":"root.a/b"`,
		"queue/root.a%252Fb":                 `"queuename":"root.a/b"`,
		"queue/root.A%252fb":                 `"queuename":"root.a/b"`,
		"queue/root.c%2523d":                 `"queuename":"root.c#d"`,
		"queue/root.a%252Fb/applications":    `"applicationID":"app"`,
		"queue/root.a%252Fb/application/app": `"applicationID":"app"`,
		"usage/user/a%2Fb":                   `"userName":"a/b"`,
		"usage/user/a%252Fb":                 `"userName":"a%2Fb"`, // as it came
		"usage/group/dev%3Aops":              `"groupName":"dev:ops"`,
		"usage/group/dev%253Aops":            `"groupName":"dev:ops"`,
		"queue/root.a%25252Fb":               "",
		"queue/root.%25zz":                   "",
		"usage/user/%2525":                   "",
		"usage/group/none%252F":              "",
	} {
		w, body := c.do(http.MethodGet, partitionPath+path)
		switch {
		case want == "" && w.Code != http.StatusNotFound:
			t.Errorf("%s: %d %s, want 404", path, w.Code, body)
		case want != "" && (w.Code != http.StatusOK || !strings.Contains(string(body), want)):
			t.Errorf("%s: %d %s, want %s", path, w.Code, body, want)
		}
	}
}

// TestNodeHasItsLabels: attributes are the labels, and YuniKorn's own entries.
func TestNodeHasItsLabels(t *testing.T) {
	c := newCluster(t, "")
	c.Node("n1", "vcore=1")
	c.Node("n2", "vcore=1")
	labels := map[string]map[string]string{"n1": {"zone": "a", "kubernetes.io/hostname": "host", "si/node-partition": "mine"}}
	c.server.options.NodeLabels = func(name string) map[string]string { return labels[name] }
	for name, want := range map[string]map[string]string{
		"n1": {"zone": "a", "kubernetes.io/hostname": "host", "si.io/hostname": "n1", "si/node-partition": "default"},
		"n2": {"si.io/hostname": "n2", "si/node-partition": "default"},
	} {
		node := read[struct{ Attributes map[string]string }](t, c, partitionPath+"node/"+name)
		expect.Same(t, "attributes of "+name, want, node.Attributes)
	}
	expect.Same(t, "the labels of the informer's node were changed", 3, len(labels["n1"]))
}

// TestClusterIsCalledAsConfigured: clusterId and rmId follow service.clusterId.
func TestClusterIsCalledAsConfigured(t *testing.T) {
	c := newCluster(t, "")
	c.server.options.Build = documents.BuildInformation()
	for _, name := range []string{"", "east", ""} {
		spec := *config.Default()
		spec.ClusterID = name
		c.Store.Configure(&spec, c.Now)
		want := cmp.Or(name, "mycluster")
		for path, part := range map[string]string{
			"/ws/v1/partitions": `"clusterId":"` + want + `"`, "/ws/v1/scheduler/node-utilizations": `"clusterId":"` + want + `"`,
			"/ws/v1/clusters": `"rmId":"` + want + `"`, "/ws/v1/fullstatedump": `"rmId":"` + want + `"`,
		} {
			_, body := c.do(http.MethodGet, path)
			expect.That(t, strings.Contains(string(body), part), "%s: %s, want %s", path, body, part)
		}
	}
}
