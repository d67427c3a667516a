package nodeagent

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodeReport returns the strategic merge patch that completes a node's status and keeps it
// Ready, or nil if no change is needed.
func nodeReport(node *corev1.Node, kubeletVersion string, at time.Time) ([]byte, error) {
	var status corev1.NodeStatus
	status.Conditions = staleConditions(node, metav1.NewTime(at))
	if len(node.Status.Allocatable) == 0 {
		status.Capacity = node.Status.Capacity
		if len(status.Capacity) == 0 {
			defaults, err := NodeSpec{}.withDefaults().capacity()
			if err != nil {
				return nil, err
			}
			status.Capacity = defaults
		}
		status.Allocatable = status.Capacity
	}
	if len(node.Status.Addresses) == 0 {
		status.Addresses = []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: hostAddress},
			{Type: corev1.NodeHostName, Address: node.Name},
		}
	}
	if len(status.Conditions) == 0 && status.Allocatable == nil && status.Addresses == nil {
		return nil, nil
	}
	patch := map[string]any{}
	for key, part := range map[string]any{
		"conditions": status.Conditions, "capacity": status.Capacity, "allocatable": status.Allocatable, "addresses": status.Addresses,
	} {
		patch[key] = part
	}
	if node.Status.NodeInfo.KubeletVersion == "" {
		patch["nodeInfo"] = corev1.NodeSystemInfo{
			KubeletVersion: kubeletVersion, ContainerRuntimeVersion: "simulated://1", OperatingSystem: "linux", Architecture: "amd64",
		}
	}
	return encodeStatus(patch)
}

// encodeStatus leaves out nil values, because a null in a patch would delete.
func encodeStatus(parts map[string]any) ([]byte, error) {
	kept := map[string]json.RawMessage{}
	for key, part := range parts {
		data, err := json.Marshal(part)
		if err != nil {
			return nil, fmt.Errorf("encode node status %s: %w", key, err)
		}
		if string(data) != "null" {
			kept[key] = data
		}
	}
	return json.Marshal(map[string]any{"status": kept})
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
		if hasCondition(node, c.Type, c.Status) {
			continue
		}
		c.LastHeartbeatTime, c.LastTransitionTime = now, now
		out = append(out, c)
	}
	return out
}

func hasCondition(node *corev1.Node, kind corev1.NodeConditionType, status corev1.ConditionStatus) bool {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == kind {
			return c.Status == status
		}
	}
	return false
}

// missingLabels returns a merge patch with the standard labels that the node lacks, or nil.
func missingLabels(node *corev1.Node) ([]byte, error) {
	add := map[string]string{}
	for key, value := range standardLabels(node.Name) {
		if _, ok := node.Labels[key]; !ok {
			add[key] = value
		}
	}
	if len(add) == 0 {
		return nil, nil
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{"labels": add}})
}
