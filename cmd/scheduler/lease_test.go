package main

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/leader"
)

func TestFollowLease(t *testing.T) {
	gate := leader.NewGate()
	election := &leaderelection.LeaderElectionConfig{
		RenewDeadline: 10 * time.Second,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: "kube-system", Name: "paddock-scheduler"},
			Client:     fake.NewClientset().CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: "a"},
		},
	}
	followLease(election, gate)
	if gate.Leading() {
		t.Error("leading before the lease is held")
	}
	record := resourcelock.LeaderElectionRecord{HolderIdentity: "a", LeaseDurationSeconds: 15}
	expect.OK(t, election.Lock.Create(t.Context(), record))
	if !gate.Leading() {
		t.Error("not leading though the lease is held")
	}
	record.HolderIdentity = ""
	expect.OK(t, election.Lock.Update(t.Context(), record))
	if gate.Leading() {
		t.Error("leading after the lease was released")
	}
}

func TestFollowNoLease(t *testing.T) {
	silenceBuiltin(t)
	cc, _, err := setUp(t, parse(t, "--leader-elect=false"))
	expect.OK(t, err)
	gate := leader.NewGate()
	followLease(cc.LeaderElection, gate)
	if !gate.Leading() {
		t.Error("not leading though there is no leader election")
	}
}
