package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/paddock-scheduler/paddock/internal/expect"
	manifests "github.com/paddock-scheduler/paddock/manifests/config"
	"github.com/paddock-scheduler/paddock/pkg/leader"
)

// command runs the command as a process and returns what it printed.
func command(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	self, err := os.Executable()
	expect.OK(t, err)
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), commandEnv+"=1")
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	err = cmd.Run()
	return out.String(), log.String(), err
}

func TestVersion(t *testing.T) {
	stdout, _, err := command(t, "--version")
	expect.OK(t, err)
	expect.Same(t, "lines", 2, strings.Count(stdout, "\n"))
	expect.That(t, strings.HasPrefix(stdout, "Paddock ") && strings.Contains(stdout, "\nKubernetes v"), "got %q", stdout)
}

// A command or a setting that does not exist ends the process and is named.
func TestUnknownWordsAreNamed(t *testing.T) {
	bad := bytes.ReplaceAll(manifests.SecondScheduler, []byte("managedProfiles"), []byte("managedProfile"))
	for says, args := range map[string][]string{
		`unknown command "start"`: {"start"},
		`decoding args for plugin QueueSort: strict decoding error: unknown field \"managedProfile\"`: {
			"--master=http://127.0.0.1:1", "--secure-port=0", "--config=" + configFile(t, bad),
		},
	} {
		_, stderr, err := command(t, args...)
		expect.That(t, err != nil, "%q ends well", args)
		expect.Says(t, stderr, says)
	}
}

// What --write-config-to writes is complete and means the same when read again.
func TestWriteConfig(t *testing.T) {
	first := filepath.Join(t.TempDir(), "first.yaml")
	second := filepath.Join(t.TempDir(), "second.yaml")
	write := func(config, path string) {
		t.Helper()
		_, stderr, err := command(t, "--master=http://127.0.0.1:1", "--secure-port=0",
			"--config="+config, "--write-config-to="+path)
		expect.That(t, err == nil, "%v: %s", err, stderr)
	}
	write(configFile(t, withoutREST(t, manifests.TwoProfiles)), first)
	write(first, second)
	want, got := load(t, first), load(t, second)
	expect.Same(t, "written, read and written again", want, got)
	expect.Same(t, "lease of the configuration that was read", "paddock-scheduler", got.LeaderElection.ResourceName)
	expect.Same(t, "profiles of the configuration that was read", 2, len(got.Profiles))
}

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
	expect.Same(t, "leading before the lease is held", false, gate.Leading())
	record := resourcelock.LeaderElectionRecord{HolderIdentity: "a", LeaseDurationSeconds: 15}
	expect.OK(t, election.Lock.Create(t.Context(), record))
	expect.Same(t, "leading while the lease is held", true, gate.Leading())
}

func TestFollowNoLease(t *testing.T) {
	silenceBuiltin(t)
	cc, _, err := setUp(t, parse(t, "--leader-elect=false"))
	expect.OK(t, err)
	gate := leader.NewGate()
	followLease(cc.LeaderElection, gate)
	expect.Same(t, "leading without leader election", true, gate.Leading())
}
