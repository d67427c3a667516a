package process

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/pkg/events"
	"github.com/paddock-scheduler/paddock/pkg/evict"
	"github.com/paddock-scheduler/paddock/pkg/queues/store"
)

// execute starts what carries out the store's decisions about holds.
func (p *Process) execute(ctx context.Context, h fwk.Handle, s *store.Store, logger klog.Logger) {
	if h.EventRecorder() == nil || h.ClientSet() == nil {
		return // a framework without an API server, as tests make it
	}
	executor := &evict.Executor{
		Store: s, Client: h.ClientSet(), Pods: h.SharedInformerFactory().Core().V1().Pods().Lister(),
		Recorder: func(profile string) clientevents.EventRecorder { return p.recorder(profile, h.EventRecorder()) },
		Leading:  p.Leader.Leading,
		Reject:   func(uid types.UID, message string) bool { return reject(h, uid, message) },
		Note:     events.Note, Advice: events.Advice, Clock: p.Clock, Logger: logger.WithName("executor"),
	}
	go executor.Run(ctx)
}

// reject turns away a pod that waits for a Permit plugin. Waiting pods are common
// to all profiles of a scheduler.
func reject(h fwk.Handle, uid types.UID, message string) bool {
	w := h.GetWaitingPod(uid)
	if w == nil {
		return false
	}
	w.Reject("QueuePreemption", message)
	return true
}
