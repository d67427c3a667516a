package nodeagent

import (
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodeReport returns the strategic merge patch that completes a node's status and keeps it
// Ready, or nil if no change is needed.
func nodeReport(node *corev1.Node, kubeletVersion string, at time.Time) ([]byte, error) {
	status := map[string]any{}
	if conditions := staleConditions(node, metav1.NewTime(at)); len(conditions) > 0 {
		status["conditions"] = conditions
	}
	if len(node.Status.Addresses) == 0 {
		status["addresses"] = []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: hostAddress},
			{Type: corev1.NodeHostName, Address: node.Name},
		}
	}
	if len(status) == 0 {
		return nil, nil
	}
	if node.Status.NodeInfo.KubeletVersion == "" {
		status["nodeInfo"] = corev1.NodeSystemInfo{
			KubeletVersion: kubeletVersion, ContainerRuntimeVersion: "simulated://1", OperatingSystem: "linux", Architecture: "amd64",
		}
	}
	return json.Marshal(map[string]any{"status": status})
}

// staleConditions returns the conditions that differ from those of a healthy node.
func staleConditions(node *corev1.Node, now metav1.Time) []corev1.NodeCondition {
	want := []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "the simulated node is ready",
	}}
	for _, kind := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		want = append(want, corev1.NodeCondition{Type: kind, Status: corev1.ConditionFalse, Reason: "NoPressure", Message: "simulated"})
	}
	var out []corev1.NodeCondition
	for _, c := range want {
		if !slices.ContainsFunc(node.Status.Conditions, func(has corev1.NodeCondition) bool { return has.Type == c.Type && has.Status == c.Status }) {
			c.LastHeartbeatTime, c.LastTransitionTime = now, now
			out = append(out, c)
		}
	}
	return out
}
