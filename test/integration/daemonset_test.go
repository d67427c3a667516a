package integration

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// template is what a controller makes the pods of a group from.
func (e *env) template(of string, options ...podOption) corev1.PodTemplateSpec {
	p := e.pod("", of, options...)
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: p.Labels, Annotations: p.Annotations}, Spec: p.Spec}
}

// createDaemonSet makes a DaemonSet with pods in the group of its name.
func (e *env) createDaemonSet(name string, options ...podOption) {
	e.Helper()
	sets := suite.client.AppsV1().DaemonSets(e.ns)
	expect.Get(sets.Create(e.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.DaemonSetSpec{Selector: e.selector(name), Template: e.template(name, options...)},
	}, metav1.CreateOptions{}))(e)
	e.Cleanup(func() { // or it would recreate the pods that the test removes in the end
		// The error is that the test itself has deleted it.
		_ = sets.Delete(context.Background(), name, inBackground())
	})
}
