package informer

import (
	"fmt"
	"strings"
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
// force stays, also if ConfigMap yunikorn-defaults has another one. The built-in configuration is used only if there is no ConfigMap from the
// start.
func TestNoDocumentIsAMistake(t *testing.T) {
	absent := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "yk", Name: name}}
	}
	configs := func(data map[string]string) *corev1.ConfigMap { return configMap(config.QueuesConfigMap, data) }
	withDefaults := configMap(config.DefaultsConfigMap, queues(document("loose")))
	fallsBack := func(about string, like ...string) string {
		return fmt.Sprintf("failed %q on yk/%s", ErrFallsBack("queues.yaml", like).Error(), about)
	}
	packed := configs(nil)
	packed.BinaryData = map[string][]byte{"queues.yaml.gz": expect.Gzipped(document("b"))}
	const (
		mapName      = config.QueuesConfigMap
		fromDefaults = " from " + fromMaps + "; the document is that of yunikorn-defaults, because yunikorn-configs has no key queues.yaml"
	)
	for _, c := range []struct {
		name     string
		defaults *corev1.ConfigMap // absent if nil
		configs  *corev1.ConfigMap
		after    string // if a document was in force
		start    string // if this is the first read
	}{
		{"the key is written in another way", nil, configs(map[string]string{"Queues.yaml": document("a")}), noDocument("queues.yaml", mapName), noDocument("queues.yaml", mapName)},
		{"another policyGroup", nil, configs(map[string]string{"service.policyGroup": "other", "queues.yaml": document("a")}), noDocument("other.yaml", mapName), noDocument("other.yaml", mapName)},
		{"emptied", nil, configs(nil), noDocument("queues.yaml", mapName), noDocument("queues.yaml", mapName)},
		{"an empty value", nil, configs(queues("")), noDocument("queues.yaml", mapName), noDocument("queues.yaml", mapName)},
		{"comments only", nil, configs(queues("# nothing\n\n# more\n")), noDocument("queues.yaml", mapName), noDocument("queues.yaml", mapName)},
		{"options only", nil, configs(map[string]string{"service.clusterId": "x"}), noDocument("queues.yaml", mapName), noDocument("queues.yaml", mapName)},
		{"deleted", nil, absent(config.QueuesConfigMap), noDocument("queues.yaml", mapName), "loaded []"},
		{"an explicit one without queues", nil, configs(queues(config.DefaultDocument)), "loaded []", "loaded []"},
		{"the key is written in another way, and there are defaults", withDefaults, configs(map[string]string{"Queues.yaml": document("a")}), fallsBack(mapName, "Queues.yaml"), fallsBack(mapName, "Queues.yaml")},
		{"the key is cut short, and there are defaults", withDefaults, configs(map[string]string{"queues.yml": document("a"), "service.clusterId": "x"}), fallsBack(mapName, "queues.yml"), fallsBack(mapName, "queues.yml")},
		{"options only, and there are defaults", withDefaults, configs(map[string]string{"log.level": "x"}), fallsBack(mapName), "loaded [loose]" + fromDefaults},
		{"deleted, and there are defaults", withDefaults, absent(config.QueuesConfigMap), fallsBack(config.DefaultsConfigMap), "loaded [loose]"},
		{"emptied, and there are defaults", withDefaults, configs(queues("")), noDocument("queues.yaml", mapName), noDocument("queues.yaml", mapName)},
		{"packed, and there are defaults", withDefaults, packed, "loaded [b]", "loaded [b]"},
		{"deleted, and the defaults are the same", configMap(config.DefaultsConfigMap, queues(document("a"))), absent(config.QueuesConfigMap), fallsBack(config.DefaultsConfigMap), "loaded [a]"},
		{"replaced by the defaults' document", withDefaults, configs(queues(document("loose"))), "loaded [loose]", "loaded [loose]"},
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
				defaults := c.defaults
				if defaults == nil {
					defaults = absent(config.DefaultsConfigMap)
				}
				m.Read(defaults, c.configs)
				lines = append(lines, want)
				if before != nil { // the document comes back
					m.Read(absent(config.DefaultsConfigMap), before)
					lines = append(lines, "loaded [a]")
				}
				for i := range lines {
					if !strings.Contains(lines[i], fromDefaults) {
						lines[i] += " from " + fromMaps
					}
				}
				expect.Same(t, "after a document: "+fmt.Sprint(before != nil), lines, h.all())
			}
		})
	}
}
