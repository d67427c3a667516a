package informer

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

// noDocument is the expected line if there is no document under the key.
func noDocument(key, about string) string {
	return fmt.Sprintf("failed %q on yk/%s", config.ErrNoDocument(key).Error(), about)
}

// TestNoDocumentIsAMistake: if the document is removed in any way, the configuration in
// force stays. The built-in configuration is used only if there is no ConfigMap from the
// start.
func TestNoDocumentIsAMistake(t *testing.T) {
	absent := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "yk", Name: name}}
	}
	configs := func(data map[string]string) *corev1.ConfigMap { return configMap(config.QueuesConfigMap, data) }
	const mapName = config.QueuesConfigMap
	for _, c := range []struct {
		name    string
		configs *corev1.ConfigMap
		after   string // if a document was in force
		start   string // if this is the first read
	}{
		{"the key is written in another way", configs(map[string]string{"Queues.yaml": document("a")}), noDocument("queues.yaml", mapName), noDocument("queues.yaml", mapName)},
		{"another policyGroup", configs(map[string]string{"service.policyGroup": "other", "queues.yaml": document("a")}), noDocument("other.yaml", mapName), noDocument("other.yaml", mapName)},
		{"emptied", configs(nil), noDocument("queues.yaml", mapName), noDocument("queues.yaml", mapName)},
		{"an empty value", configs(queues("")), noDocument("queues.yaml", mapName), noDocument("queues.yaml", mapName)},
		{"comments only", configs(queues("# nothing\n\n# more\n")), noDocument("queues.yaml", mapName), noDocument("queues.yaml", mapName)},
		{"options only", configs(map[string]string{"service.clusterId": "x"}), noDocument("queues.yaml", mapName), noDocument("queues.yaml", mapName)},
		{"deleted", absent(config.QueuesConfigMap), noDocument("queues.yaml", config.DefaultsConfigMap), "loaded []"},
		{"an explicit one without queues", configs(queues(config.DefaultDocument)), "loaded []", "loaded []"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, before := range []*corev1.ConfigMap{configs(queues(document("a"))), nil} {
				want := c.start
				h := &told{}
				m := expect.Get(NewConfigMaps(fake.NewClientset(), "yk", h, klog.Background()))(t)
				lines := []string{}
				if before != nil {
					m.Read(absent(config.DefaultsConfigMap), before)
					lines, want = append(lines, "loaded [a]"), c.after
				}
				m.Read(absent(config.DefaultsConfigMap), c.configs)
				lines = append(lines, want)
				if before != nil { // the document comes back
					m.Read(absent(config.DefaultsConfigMap), before)
					lines = append(lines, "loaded [a]")
				}
				for i := range lines {
					lines[i] += " from " + fromMaps
				}
				if got := h.all(); !slices.Equal(got, lines) {
					t.Errorf("after a document: %t\ngot  %q\nwant %q", before != nil, got, lines)
				}
			}
		})
	}
}
