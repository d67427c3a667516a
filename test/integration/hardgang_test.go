package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

const hardGangQueues = `
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: gangs
      resources: {max: {vcore: 2}}
`

// style is the gang scheduling style of a pod, in YuniKorn's words.
func style(of string) podOption {
	return annotated(placement.KeyPolicyParameters, "placeholderTimeoutInSeconds=60 gangSchedulingStyle="+of)
}

// ofTaskGroup makes a pod a member of task group g of its application. The groups are
// written on the pods, as KubeRay does, or only named, as on executors.
func ofTaskGroup(written bool) podOption {
	return func(p *corev1.Pod) {
		p.Annotations[placement.KeyTaskGroupName] = "g"
		if written {
			p.Annotations[placement.KeyTaskGroups] = `[{"name":"g","minMember":3,"minResource":{"cpu":"1"}}]`
		}
	}
}

// TestHardGangNeverRunsByHalves: queue and node have room for two of the three pods of a
// Hard gang. None of them ever runs, or keeps the room from others. After they ask for
// Soft, two of the very same pods run, which shows that only the style kept them.
func TestHardGangNeverRunsByHalves(t *testing.T) {
	e := setup(t, hardGangQueues)
	for _, c := range []struct {
		name string
		says []bool // which pods say Hard, in the order of creation
	}{
		{"all", []bool{true, true, true}},
		{"driver", []bool{true, false, false}},
	} {
		e.run(c.name, func(e *env) {
			part := e.apart(c.name, 1, localcluster.NodeSpec{CPU: "2"})
			binds := part.watchPods()
			var gang []*corev1.Pod
			for i, says := range c.says {
				p := part.pod(fmt.Sprintf("%s-%d", c.name, i), c.name, inQueue("root.gangs"), ofTaskGroup(says))
				if says {
					style("Hard")(p)
				}
				gang = append(gang, part.createPod(p))
			}
			for _, p := range gang {
				part.awaitRefused(p, reasons.HardGangUnsupported)
			}
			part.expectStill(c.name, 0, 3, reasons.HardGangUnsupported)
			part.expectAll("beside", 2, inQueue("root.gangs"))
			part.expectStill(c.name, 0, 3, reasons.HardGangUnsupported)
			part.clear("beside")
			part.expectStill(c.name, 0, 3, reasons.HardGangUnsupported)
			if early := slices.DeleteFunc(binds.boundInOrder(), func(name string) bool { return !strings.HasPrefix(name, c.name) }); len(early) > 0 {
				part.Errorf("of the gang were bound %q", early)
			}
			for i, says := range c.says {
				if says {
					part.patch(gang[i], fmt.Sprintf(`{"metadata":{"annotations":{%q:"gangSchedulingStyle=Soft"}}}`, placement.KeyPolicyParameters))
				}
			}
			part.expect(c.name, 2, 1, reasons.OverMax)
			part.expectBooks()
			part.clear(c.name)
		})
	}
}
