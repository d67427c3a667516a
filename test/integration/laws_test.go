package integration

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

func neverPreempts(c *schedulingv1.PriorityClass) {
	never := corev1.PreemptNever
	c.PreemptionPolicy = &never
}

// awaitTold waits until the condition PodScheduled of a pod, or an event about it,
// contains a text, in upper or lower case.
func (e *env) awaitTold(p *corev1.Pod, text string) {
	e.Helper()
	says := func(s string) bool { return strings.Contains(strings.ToLower(s), strings.ToLower(text)) }
	eventually(e, patience, fmt.Sprintf("pod %s is told of %q", p.Name, text), func() (bool, string) {
		now := e.get(p)
		if c := conditionOf(now, corev1.PodScheduled); c != nil && says(c.Message) {
			return true, ""
		}
		list := expect.Get(eventsOf(e.Context(), p))(e)
		for i := range list {
			if says(list[i].Message) {
				return true, ""
			}
		}
		return false, describe(e.Context(), now)
	})
}

// priorityClass makes a priority class ID-NAME.
func (e *env) priorityClass(name string, value int32, options ...func(*schedulingv1.PriorityClass)) {
	e.Helper()
	classes := suite.client.SchedulingV1().PriorityClasses()
	full := e.id + "-" + name
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: full}, Value: value}
	for _, o := range options {
		o(class)
	}
	expect.Get(classes.Create(e.Context(), class, metav1.CreateOptions{}))(e)
	e.Cleanup(func() { expect.Holds(e, classes.Delete(context.Background(), full, metav1.DeleteOptions{})) })
}
