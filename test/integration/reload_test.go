package integration

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// reloadSuccess is the metric on which an administrator alerts.
const reloadSuccess = "paddock_config_last_reload_success"

// oneLeaf is a configuration with leaf root.a of a max of so many cores.
func oneLeaf(most string) string {
	return `
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: a
      resources: {max: {vcore: ` + most + `}}
`
}

// TestBadReload checks that a mistake in the configuration harms no pod, and that it is
// reported in all the places where an administrator may look.
func TestBadReload(t *testing.T) {
	e := setup(t, oneLeaf("2"))
	e.create("p", 4, inQueue("root.a"))
	e.expect("p", 2, 2, reasons.OverMax)
	e.awaitMetric(reloadSuccess, "1")

	e.configure(strings.Replace(oneLeaf("7"), "submitacl", "submitters", 1))
	e.awaitMetric(reloadSuccess, "0")
	configMap, err := suite.client.CoreV1().ConfigMaps(e.configNamespace()).Get(t.Context(), config.QueuesConfigMap, metav1.GetOptions{})
	e.ok(err)
	event := e.awaitEvent(configMap, string(reasons.ConfigurationInvalid), "submitters")
	if event.Type != corev1.EventTypeWarning || !strings.Contains(event.Message, "the configuration before stays in force") {
		t.Errorf("event %s %q does not say what is in force now", event.Type, event.Message)
	}
	eventually(t, patience, "the log tells of the mistake", func() (bool, string) {
		line, found := e.logLine("The queue configuration cannot be used")
		return found && strings.Contains(line, "submitters"), line
	})
	if got := e.queue("root.a").MaxResource["vcore"]; got != 2000 {
		t.Errorf("after a bad reload root.a has max %d, want the 2000 of before", got)
	}
	// The scheduler keeps the queues of before.
	running, _ := e.podsOf("p")
	e.delete(running[0])
	e.expectStill("p", 2, 1, reasons.OverMax)

	e.configure(oneLeaf("3"))
	e.awaitMetric(reloadSuccess, "1")
	e.expect("p", 3, 0, "")
}

// TestPackedConfiguration checks that the queues may be a gzip file.
func TestPackedConfiguration(t *testing.T) {
	e := setup(t, oneLeaf("1"))
	e.create("p", 4, inQueue("root.a"))
	e.expect("p", 1, 3, reasons.OverMax)
	e.configurePacked(oneLeaf("3"))
	e.expectStill("p", 3, 1, reasons.OverMax)
}

// TestConfigurationDeleted checks that the queues stay when their ConfigMap is deleted,
// and that the built-in ones, one for each namespace, apply after a restart without it.
func TestConfigurationDeleted(t *testing.T) {
	e := setup(t, oneLeaf("1"))
	e.create("p", 3, inQueue("root.a"))
	e.expect("p", 1, 2, reasons.OverMax)

	e.deleteConfigMap()
	e.awaitMetric(reloadSuccess, "0")
	e.expectStill("p", 1, 2, reasons.OverMax)

	e.kill()
	e.start()
	e.expect("p", 3, 0, "")
	e.awaitRunning(e.create("free", 1)[0])
	e.awaitQueue("root."+e.ns, "has all pods", func(q *documents.Queue) bool {
		return !q.IsManaged && q.AllocatedResource["vcore"] == 4000
	})
}

// TestConfigurationThatMayNotBeRead checks that pods and answers say so as long as the
// scheduler may not read the ConfigMaps, and no longer.
func TestConfigurationThatMayNotBeRead(t *testing.T) {
	e := setup(t, "", func(s *settings) {
		s.configNamespace, s.refused = "unreadable-config", true
		s.before = func(e *env) {
			e.namespace(e.configNamespace(), nil)
			e.configure(oneLeaf("2"))
		}
	})
	p := e.create("held", 1, inQueue("root.a"))[0]
	e.awaitRefused(p, reasons.ConfigurationUnreadable)
	e.awaitExplained(p, reasons.ConfigurationUnreadable, asReason)
	e.ok(suite.cluster.GrantConfigNamespace(t.Context(), e.configNamespace()))
	e.expect("held", 1, 0, "")
}

// TestBadConfigurationAtStart checks that a scheduler that never had a usable
// configuration holds the pods of queues back, says so, and schedules all other pods.
func TestBadConfigurationAtStart(t *testing.T) {
	e := setup(t, strings.Replace(oneLeaf("2"), "vcore: 2", "vcore: many", 1), twoProfiles)
	held := e.create("held", 3, inQueue("root.a"))
	for _, p := range held {
		if message := e.awaitRefused(p, reasons.ConfigurationInvalid); !strings.Contains(message, "many") {
			t.Errorf("pod %s is told %q, which does not name the mistake", p.Name, message)
		}
		e.awaitEvent(p, string(reasons.ConfigurationInvalid), "many")
	}
	e.awaitMetric(reloadSuccess, "0")
	e.create("other", 3, ofProfile(corev1.DefaultSchedulerName))
	e.expect("other", 3, 0, "")
	e.expectStill("held", 0, 3, reasons.ConfigurationInvalid)
	e.awaitExplained(held[0], reasons.ConfigurationInvalid, asReason)

	e.configure(oneLeaf("2"))
	e.expectStill("held", 2, 1, reasons.OverMax)
	e.awaitMetric(reloadSuccess, "1")
	running, _ := e.podsOf("held")
	for _, p := range running {
		e.awaitRunningTold(p.Name)
	}
}
