package rest

import (
	"maps"
	"math"
	"math/bits"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Partition is the name of the only partition.
const Partition = "default"

// Queue is a queue as YuniKorn's interface shows it. Amounts are in base units
// (vcore in milli-CPU, memory in bytes).
type Queue struct {
	QueueName          string            `json:"queuename"`
	Status             string            `json:"status"`
	Partition          string            `json:"partition"`
	PendingResource    map[string]int64  `json:"pendingResource,omitempty"`
	MaxResource        map[string]int64  `json:"maxResource,omitempty"`
	GuaranteedResource map[string]int64  `json:"guaranteedResource,omitempty"`
	AllocatedResource  map[string]int64  `json:"allocatedResource,omitempty"`
	PreemptingResource map[string]int64  `json:"preemptingResource,omitempty"`
	HeadRoom           map[string]int64  `json:"headroom,omitempty"`
	IsLeaf             bool              `json:"isLeaf"`
	IsManaged          bool              `json:"isManaged"`
	Properties         map[string]string `json:"properties,omitempty"`
	Parent             string            `json:"parent,omitempty"`
	Template           *Template         `json:"template,omitempty"`
	Children           []*Queue          `json:"children,omitempty"`
	ChildNames         []string          `json:"childNames,omitempty"`
	AbsUsedCapacity    map[string]int64  `json:"absUsedCapacity,omitempty"`
	MaxRunningApps     uint64            `json:"maxRunningApps,omitempty"`
	RunningApps        uint64            `json:"runningApps,omitempty"`
	SortingPolicy      string            `json:"sortingPolicy,omitempty"`
	PrioritySorting    bool              `json:"prioritySorting"`
	PreemptionEnabled  bool              `json:"preemptionEnabled"`
	IsPreemptionFence  bool              `json:"isPreemptionFence"`
	PreemptionDelay    string            `json:"preemptionDelay,omitempty"`
	IsPriorityFence    bool              `json:"isPriorityFence"`
	PriorityOffset     int32             `json:"priorityOffset,omitempty"`
}

// Template is a child template as YuniKorn's interface shows it.
type Template struct {
	MaxApplications    uint64            `json:"maxApplications,omitempty"`
	MaxResource        map[string]int64  `json:"maxResource,omitempty"`
	GuaranteedResource map[string]int64  `json:"guaranteedResource,omitempty"`
	Properties         map[string]string `json:"properties,omitempty"`
}

// queueTree shows a queue, with everything below it or only the names of its
// children. YuniKorn's names of children are full paths.
func queueTree(v *inventory.View, id queues.ID, below bool) *Queue {
	return (&tree{snapshot: v.Queues, preempting: preempting(v)}).queue(id, below)
}

// tree is what queues are shown from.
type tree struct {
	snapshot   *queues.Snapshot
	preempting map[queues.ID]resources.Vector
}

// preempting is what victims that are not gone yet use, by queue.
func preempting(v *inventory.View) map[queues.ID]resources.Vector {
	out := map[queues.ID]resources.Vector{}
	for _, p := range v.Preempted {
		leaf, ok := v.Queues.Find(p.Queue)
		if !ok {
			continue
		}
		for q := range v.Queues.Ancestors(leaf.ID) {
			out[q.ID] = out[q.ID].Add(p.Request)
		}
	}
	return out
}

func (t *tree) queue(id queues.ID, below bool) *Queue {
	s := t.snapshot
	q := s.Queue(id)
	out := &Queue{
		QueueName: q.Path, Status: q.State.String(), Partition: Partition,
		PendingResource: amounts(q.Pending.Map()), AllocatedResource: amounts(q.Allocated.Map()),
		MaxResource: amounts(maxOf(s, q).Map()), GuaranteedResource: amounts(q.Guaranteed.Map()),
		PreemptingResource: amounts(t.preempting[id].Map()),
		HeadRoom:           amounts(headroom(s, id).Map()), AbsUsedCapacity: percent(q.Allocated, maxOf(s, q)),
		IsLeaf: q.Leaf, IsManaged: q.Managed, Properties: maps.Clone(q.Properties), Template: templateOf(q.Template),
		MaxRunningApps: q.MaxApplications, RunningApps: uint64(max(q.Running, 0)),
		SortingPolicy: sortingPolicy(q), PrioritySorting: q.Policies.PrioritySort,
		PreemptionEnabled: q.Policies.Preemption != config.PreemptionDisabled,
		IsPreemptionFence: q.Policies.Preemption == config.PreemptionFence,
		PreemptionDelay:   q.Policies.PreemptionDelay.String(),
		IsPriorityFence:   q.Policies.PriorityFence, PriorityOffset: q.Policies.PriorityOffset,
	}
	if parent := s.Queue(q.Parent); parent != nil {
		out.Parent = parent.Path
	}
	for _, c := range q.Children {
		out.ChildNames = append(out.ChildNames, s.Queue(c).Path)
		if below {
			out.Children = append(out.Children, t.queue(c, true))
		}
	}
	return out
}

// maxOf is the max people are shown: root's is what the nodes hold.
func maxOf(s *queues.Snapshot, q *queues.Queue) resources.Limit {
	if q.IsRoot() {
		return resources.LimitFrom(s.Capacity().Map())
	}
	return q.Max
}

// headroom is the room people are shown. Other than for quotas, root counts:
// there is not more room than the nodes have.
func headroom(s *queues.Snapshot, id queues.ID) resources.Limit {
	root := s.Root()
	return queues.Headroom(s, id).Min(maxOf(s, root).Headroom(root.Allocated))
}

func sortingPolicy(q *queues.Queue) string {
	if q.Leaf {
		return string(q.Policies.ApplicationSort)
	}
	return string(config.SortFair)
}

func templateOf(t *config.Template) *Template {
	if t == nil {
		return nil
	}
	return &Template{
		MaxApplications: t.MaxApplications, MaxResource: amounts(t.Max.Map()),
		GuaranteedResource: amounts(t.Guaranteed.Map()), Properties: maps.Clone(t.Properties),
	}
}

func amounts(m map[string]resources.Amount) map[string]int64 {
	out := make(map[string]int64, len(m))
	for name, a := range m {
		out[name] = int64(a)
	}
	return out
}

// percent is how much of the limit is used, rounded down, per limited type that
// is used at all. Any use of a type limited to nothing is 100.
func percent(used resources.Vector, limit resources.Limit) map[string]int64 {
	out := map[string]int64{}
	for name, most := range limit.All() {
		u := used.Get(name)
		switch {
		case u <= 0:
		case most <= 0:
			out[name] = 100
		default:
			out[name] = hundredTimes(uint64(u), uint64(most))
		}
	}
	return out
}

// hundredTimes is 100*u/v, rounded down, at most the largest int64.
func hundredTimes(u, v uint64) int64 {
	hi, lo := bits.Mul64(u, 100)
	if hi >= v {
		return math.MaxInt64
	}
	quotient, _ := bits.Div64(hi, lo, v)
	return int64(min(quotient, math.MaxInt64))
}
