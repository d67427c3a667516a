package nodeagent

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/utils/ptr"
)

// hostAddress is the address of every simulated node: nothing listens there, so that "kubectl logs" fails at once.
const hostAddress = "127.0.0.1"

const exitKilled = 137

// address returns the address of a pod, in 10.128.0.0/9. The agent gives each of these eight
// million to one pod, and begins at any of them.
func (a *Agent) address() string {
	n := a.addresses.Add(1) % (1 << 23)
	return netip.AddrFrom4([4]byte{10, 128 | byte(n>>16), byte(n >> 8), byte(n)}).String()
}

// statusPatch returns a strategic merge patch of a pod's status. It holds only for the pod with this UID.
func statusPatch(uid types.UID, status corev1.PodStatus) ([]byte, error) {
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid}, "status": status})
	if err != nil {
		return nil, fmt.Errorf("encode pod status: %w", err)
	}
	return data, nil
}

// runningStatus is the status of a pod when all its containers have just started.
func runningStatus(pod *corev1.Pod, ip string, at time.Time) corev1.PodStatus {
	now := metav1.NewTime(at)
	if pod.Spec.HostNetwork {
		ip = hostAddress
	}
	s := corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: &now, ObservedGeneration: pod.Generation,
		HostIP: hostAddress, HostIPs: []corev1.HostIP{{IP: hostAddress}},
		PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
	}
	for _, kind := range []corev1.PodConditionType{
		corev1.PodScheduled, corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady,
	} {
		if !conditionTrue(pod, kind) {
			s.Conditions = append(s.Conditions, condition(kind, true, "", now))
		}
	}
	for _, c := range pod.Spec.InitContainers {
		if podutil.IsRestartableInitContainer(&c) {
			s.InitContainerStatuses = append(s.InitContainerStatuses, runningContainer(pod, c, now))
		} else {
			s.InitContainerStatuses = append(s.InitContainerStatuses, endedContainer(pod, c, 0, now, now))
		}
	}
	for _, c := range pod.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, runningContainer(pod, c, now))
	}
	return s
}

// endedStatus is the status of a pod when all its containers have ended with this exit
// code. Only code 0 is a success.
func endedStatus(pod *corev1.Pod, exitCode int32, at time.Time) corev1.PodStatus {
	now := metav1.NewTime(at)
	from := ptr.Deref(pod.Status.StartTime, now)
	s := corev1.PodStatus{Phase: corev1.PodSucceeded, StartTime: &from}
	reason := "PodCompleted"
	if exitCode != 0 {
		s.Phase, reason = corev1.PodFailed, "PodFailed"
	}
	s.Conditions = []corev1.PodCondition{
		condition(corev1.ContainersReady, false, reason, now),
		condition(corev1.PodReady, false, reason, now),
	}
	for _, c := range pod.Spec.InitContainers {
		code := int32(0)
		if podutil.IsRestartableInitContainer(&c) {
			code = exitCode
		}
		s.InitContainerStatuses = append(s.InitContainerStatuses, endedContainer(pod, c, code, from, now))
	}
	for _, c := range pod.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, endedContainer(pod, c, exitCode, from, now))
	}
	return s
}

// rejectedStatus is the status of a pod that its node rejects.
func rejectedStatus(r rejection, at time.Time) corev1.PodStatus {
	now := metav1.NewTime(at)
	return corev1.PodStatus{
		Phase: corev1.PodFailed, Reason: r.reason, Message: "Pod was rejected: " + r.message, StartTime: &now,
	}
}

func conditionTrue(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	_, c := podutil.GetPodCondition(&pod.Status, kind)
	return c != nil && c.Status == corev1.ConditionTrue
}

func condition(kind corev1.PodConditionType, ok bool, reason string, now metav1.Time) corev1.PodCondition {
	c := corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, Reason: reason, LastTransitionTime: now}
	if ok {
		c.Status = corev1.ConditionTrue
	}
	return c
}

func runningContainer(pod *corev1.Pod, c corev1.Container, now metav1.Time) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: c.Name, Image: c.Image, ImageID: c.Image, ContainerID: containerID(pod, c), Ready: true, Started: new(true),
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
	}
}

func endedContainer(pod *corev1.Pod, c corev1.Container, code int32, from, to metav1.Time) corev1.ContainerStatus {
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	return corev1.ContainerStatus{
		Name: c.Name, Image: c.Image, ImageID: c.Image, ContainerID: containerID(pod, c), Ready: code == 0 && isInit(pod, c), Started: new(false),
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: reason, StartedAt: from, FinishedAt: to, ContainerID: containerID(pod, c),
		}},
	}
}

func isInit(pod *corev1.Pod, c corev1.Container) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(i corev1.Container) bool { return i.Name == c.Name })
}

func containerID(pod *corev1.Pod, c corev1.Container) string {
	return "simulated://" + string(pod.UID) + "/" + c.Name
}
