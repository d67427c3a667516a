package informer

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

// clusterIDs records the names of the cluster that the handler gets.
type clusterIDs struct{ got []string }

func (c *clusterIDs) Loaded(spec *config.Spec, _ string) { c.got = append(c.got, spec.ClusterID) }
func (c *clusterIDs) Failed(err error, _ string, _ *corev1.ConfigMap) {
	c.got = append(c.got, err.Error())
}
func (c *clusterIDs) Unreadable(error, string, string) {}

// TestClusterIDIsFollowed: service.clusterId is passed with the configuration, also if
// nothing else changes.
func TestClusterIDIsFollowed(t *testing.T) {
	h := &clusterIDs{}
	c := expect.Get(NewConfigMaps(fake.NewClientset(), "yk", h, klog.Background()))(t)
	absent := &corev1.ConfigMap{}
	for _, step := range []struct {
		defaults, configs map[string]string
		want              string // empty if the handler must not be called
	}{
		{queues(document("a")), nil, "<none>"},
		{map[string]string{"queues.yaml": document("a"), "service.clusterId": "east"}, nil, "east"},
		{map[string]string{"queues.yaml": document("a"), "service.clusterId": "east", "log.level": "-1"}, nil, ""},
		{map[string]string{"queues.yaml": document("a"), "service.clusterId": "east"}, map[string]string{"service.clusterId": "west"}, "west"},
		{queues(document("a")), nil, "<none>"},
	} {
		h.got = nil
		defaults, configs := configMap(config.DefaultsConfigMap, step.defaults), absent
		if step.configs != nil {
			configs = configMap(config.QueuesConfigMap, step.configs)
		}
		c.Read(defaults, configs)
		switch {
		case step.want == "" && len(h.got) > 0:
			t.Errorf("told %q though nothing changed", h.got)
		case step.want == "":
		case len(h.got) != 1 || h.got[0] != step.want && (h.got[0] != "" || step.want != "<none>"):
			t.Errorf("told %q, want %s", h.got, step.want)
		}
	}
}
