package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// reloadSuccess is the metric on which an administrator alerts.
const reloadSuccess = "paddock_config_last_reload_success"

// oneLeaf is a configuration with leaf root.a of a max of so many cores.
func oneLeaf(most string) string {
	return belowRoot("{name: a, resources: {max: {vcore: " + most + "}}}")
}

// TestConfigurationDeleted checks that the queues stay when their ConfigMap loses its document,
// and when it is deleted. A scheduler that starts while the document is under another key schedules
// no pod of a queue, and says so by condition, event, metric, page and health check.
func TestConfigurationDeleted(t *testing.T) {
	e := setup(t, oneLeaf("1"))
	e.create("p", 3, inQueue("root.a"))
	e.expect("p", 1, 2, reasons.OverMax)
	e.putConfigMap(&corev1.ConfigMap{})
	e.awaitNoDocument("the configuration before stays in force: there is no queue document")
	e.expectStill("p", 1, 2, reasons.OverMax)

	e.putConfigMap(&corev1.ConfigMap{Data: map[string]string{"Queues.yaml": oneLeaf("2")}})
	e.kill()
	e.start()
	e.awaitNoDocument("no pod of a queue is scheduled before there is a valid one: there is no queue document")
	e.expectStill("p", 1, 2, reasons.ConfigurationInvalid)

	e.configure(oneLeaf("2"))
	e.expect("p", 2, 1, "") // it is told of the max 10 s later
	e.awaitMetric(reloadSuccess, "1")
	e.ok(suite.client.CoreV1().ConfigMaps(e.configNamespace()).Delete(e.Context(), config.QueuesConfigMap, metav1.DeleteOptions{}))
	e.awaitNoDocument("the configuration before stays in force: there is no queue document")
	e.expectStill("p", 2, 1, "")
}

// awaitNoDocument waits until metric, event, page and health check say that there is no
// document. An event about a ConfigMap that is deleted has its name, and no UID.
func (e *env) awaitNoDocument(event string) {
	e.Helper()
	e.awaitMetric(reloadSuccess, "0")
	m, err := suite.client.CoreV1().ConfigMaps(e.configNamespace()).Get(e.Context(), config.QueuesConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		m, err = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.configNamespace(), Name: config.QueuesConfigMap}}, nil
	}
	e.ok(err)
	e.awaitEvent(m, string(reasons.ConfigurationInvalid), event)
	e.awaitText("/configuration", "there is no queue document")
	e.awaitText("/ws/v1/scheduler/healthcheck", "there is no queue document")
}
