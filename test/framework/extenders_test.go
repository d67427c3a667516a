package framework_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// deviceExtender refuses node-000 by each of its verbs: that node lacks a device that the
// API server does not know.
func deviceExtender(w http.ResponseWriter, r *http.Request) {
	answer := map[string]any{}
	switch r.URL.Path {
	case "/preempt":
		args := extenderv1.ExtenderPreemptionArgs{}
		_ = json.NewDecoder(r.Body).Decode(&args)
		delete(args.NodeNameToMetaVictims, "node-000")
		answer["nodeNameToMetaVictims"] = args.NodeNameToMetaVictims
	case "/filter":
		args := extenderv1.ExtenderArgs{}
		_ = json.NewDecoder(r.Body).Decode(&args)
		pass, failed := []string{}, extenderv1.FailedNodesMap{}
		for _, node := range *args.NodeNames {
			if node == "node-000" {
				failed[node] = "no device"
				continue
			}
			pass = append(pass, node)
		}
		answer["nodenames"], answer["failedNodes"] = pass, failed
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// TestNoPodLeavesANodeThatAnExtenderRefuses: no pod is preempted on a node that an
// extender refuses, even if the cheapest victim is there. The extender is in the
// configuration, and answers over HTTP.
func TestNoPodLeavesANodeThatAnExtenderRefuses(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(deviceExtender))
	server.Config.SetKeepAlivesEnabled(false) // an idle connection would stop the clock of the bubble
	server.Start()
	defer server.Close()
	for name, verbs := range map[string]string{"preempt and filter": "preemptVerb: preempt, filterVerb: filter", "filter": "filterVerb: filter"} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := start(t, options{queues: lentQueues, backoff: 1, before: func(c *cluster) { c.addNodes(2, 1) },
					extenders: fmt.Sprintf("[{urlPrefix: %q, %s, nodeCacheCapable: true}]", server.URL, verbs)})
				defer c.end()
				young := onNode(inQueue(pod(managed, "young", 100), "root.borrows", "young"), "node-000")
				old := onNode(inQueue(pod(managed, "old", 0), "root.borrows", "old"), "node-001")
				c.api.create(t, young, old)
				time.Sleep(time.Second)
				asker := inQueue(pod(managed, "asker", 200), "root.owed", "asker")
				asker.CreationTimestamp = metav1.Now()
				c.api.create(t, asker)
				time.Sleep(time.Minute)
				if c.api.pod("default", "young") == nil {
					t.Error("a pod left the node that the extender refuses")
				}
				if now := c.api.pod("default", "asker"); now.Spec.NodeName != "node-001" {
					t.Errorf("the asker is on node %q: %v, %+v", now.Spec.NodeName, c.store.Explain(asker.UID), condition(now, corev1.PodScheduled))
				}
				if err := c.store.Check(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
