package documents

import (
	"iter"
	"maps"
	"math"
	"math/bits"
	"slices"

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
	QueueName          string                      `json:"queuename"`
	Status             string                      `json:"status"`
	Partition          string                      `json:"partition"`
	PendingResource    map[string]resources.Amount `json:"pendingResource,omitempty"`
	MaxResource        map[string]resources.Amount `json:"maxResource,omitempty"`
	GuaranteedResource map[string]resources.Amount `json:"guaranteedResource,omitempty"`
	AllocatedResource  map[string]resources.Amount `json:"allocatedResource,omitempty"`
	PreemptingResource map[string]resources.Amount `json:"preemptingResource,omitempty"`
	HeadRoom           map[string]resources.Amount `json:"headroom,omitempty"`
	IsLeaf             bool                        `json:"isLeaf"`
	IsManaged          bool                        `json:"isManaged"`
	Properties         map[string]string           `json:"properties,omitempty"`
	Parent             string                      `json:"parent,omitempty"`
	Template           *Template                   `json:"template,omitempty"`
	Children           []*Queue                    `json:"children,omitempty"`
	ChildNames         []string                    `json:"childNames,omitempty"`
	AbsUsedCapacity    map[string]resources.Amount `json:"absUsedCapacity,omitempty"`
	MaxRunningApps     uint64                      `json:"maxRunningApps,omitempty"`
	RunningApps        uint64                      `json:"runningApps,omitempty"`
	CurrentPriority    int32                       `json:"currentPriority"`
	// AllocatingAcceptedApps count against MaxRunningApps like those of RunningApps,
	// and none of their pods was bound so far.
	AllocatingAcceptedApps []string `json:"allocatingAcceptedApps,omitempty"`
	SortingPolicy          string   `json:"sortingPolicy,omitempty"`
	PrioritySorting        bool     `json:"prioritySorting"`
	PreemptionEnabled      bool     `json:"preemptionEnabled"`
	IsPreemptionFence      bool     `json:"isPreemptionFence"`
	PreemptionDelay        string   `json:"preemptionDelay,omitempty"`
	IsPriorityFence        bool     `json:"isPriorityFence"`
	PriorityOffset         int32    `json:"priorityOffset,omitempty"`
}

// Template is a child template as YuniKorn's interface shows it.
type Template struct {
	MaxApplications    uint64                      `json:"maxApplications,omitempty"`
	MaxResource        map[string]resources.Amount `json:"maxResource,omitempty"`
	GuaranteedResource map[string]resources.Amount `json:"guaranteedResource,omitempty"`
	Properties         map[string]string           `json:"properties,omitempty"`
}

// QueueTree writes a queue, with everything below it or only the names of its
// children. YuniKorn's names of children are full paths.
func (p *JSONWriter) QueueTree(v *inventory.View, id queues.ID, below bool) {
	root := v.Queues.Root()
	t := tree{
		snapshot: v.Queues, preempting: v.Preempting(), priority: priorities(v), starting: starting(v),
		room: v.Queues.ShownMax(root).Headroom(root.Allocated),
	}
	p.queue(&t, id, below)
}

// tree is what queues are shown from.
type tree struct {
	snapshot   *queues.Snapshot
	preempting map[queues.ID]resources.Vector
	priority   map[queues.ID]int64
	starting   map[queues.ID][]string
	// room is what pods of queues leave of the capacity of all nodes. The headroom shown is
	// at most this; quota checks ignore it.
	room resources.Limit
}

// priorities is the highest priority that each queue shows to its siblings for a pod that
// waits; queues without waiting pods are left out.
func priorities(v *inventory.View) map[queues.ID]int64 {
	out := map[queues.ID]int64{}
	for _, a := range v.Applications {
		if len(a.Requests) == 0 {
			continue
		}
		p := a.Highest()
		for q := range v.Queues.Ancestors(a.Leaf) {
			p = queues.Exposed(p, q.Policies)
			if shown, waits := out[q.ID]; !waits || p > shown {
				out[q.ID] = p
			}
		}
	}
	return out
}

// starting are, by queue, the applications that count against maxapplications and have
// had no pod bound yet, by ID.
func starting(v *inventory.View) map[queues.ID][]string {
	out := map[queues.ID][]string{}
	for _, a := range v.Applications {
		if !a.Counted || !a.Running.IsZero() {
			continue
		}
		for q := range v.Queues.Ancestors(a.Leaf) {
			out[q.ID] = append(out[q.ID], a.ID)
		}
	}
	for _, ids := range out {
		slices.Sort(ids)
	}
	return out
}

// queue writes a [Queue].
func (p *JSONWriter) queue(t *tree, id queues.ID, below bool) {
	if p.Failed() {
		return
	}
	q := t.snapshot.Queue(id)
	p.Open('{')
	p.alwaysField("queuename", q.Path)
	p.alwaysField("status", q.State.String())
	p.alwaysField("partition", Partition)
	p.amountsField("pendingResource", q.Pending)
	p.quotaField("maxResource", t.snapshot.ShownMax(q).All())
	p.quotaField("guaranteedResource", q.Guaranteed.All())
	p.amountsField("allocatedResource", q.Allocated)
	p.amountsField("preemptingResource", t.preempting[id])
	p.quotaField("headroom", queues.Headroom(t.snapshot, id).Min(t.room).All())
	p.boolField("isLeaf", q.Leaf)
	p.boolField("isManaged", q.Managed)
	if len(q.Properties) > 0 {
		p.Field("properties", q.Properties)
	}
	p.TextField("parent", pathOf(t.snapshot, q.Parent))
	if t := q.Template; t != nil {
		p.Field("template", &Template{
			MaxApplications: t.MaxApplications, MaxResource: t.Max.Map(),
			GuaranteedResource: t.Guaranteed.Map(), Properties: maps.Clone(t.Properties),
		})
	}
	p.children(t, q, below)
	p.quotaField("absUsedCapacity", Percents(q.Allocated, t.snapshot.ShownMax(q)))
	p.NumberField("maxRunningApps", int64(q.MaxApplications))
	starting := t.starting[id]
	p.NumberField("runningApps", int64(max(q.Running-len(starting), 0)))
	p.Key("currentPriority")
	if priority, waits := t.priority[id]; waits {
		p.Number(priority)
	} else {
		p.Number(math.MinInt32)
	}
	p.TextsField("allocatingAcceptedApps", starting)
	p.policies(q)
	p.Close('}')
}

// children writes the queues below one, or only their names.
func (p *JSONWriter) children(t *tree, q *queues.Queue, below bool) {
	if len(q.Children) == 0 {
		return
	}
	if below {
		p.Key("children")
		p.Open('[')
		for _, c := range q.Children {
			p.queue(t, c, true)
		}
		p.Close(']')
	}
	p.Key("childNames")
	p.Open('[')
	for _, c := range q.Children {
		p.text(t.snapshot.Queue(c).Path)
	}
	p.Close(']')
}

// policies writes how a queue is ordered and preempted.
func (p *JSONWriter) policies(q *queues.Queue) {
	p.TextField("sortingPolicy", sortingPolicy(q))
	p.boolField("prioritySorting", q.Policies.PrioritySort)
	p.boolField("preemptionEnabled", q.Policies.Preemption != config.PreemptionDisabled)
	p.boolField("isPreemptionFence", q.Policies.Preemption == config.PreemptionFence)
	p.TextField("preemptionDelay", q.Policies.PreemptionDelay.String())
	p.boolField("isPriorityFence", q.Policies.PriorityFence)
	p.NumberField("priorityOffset", int64(q.Policies.PriorityOffset))
}

func sortingPolicy(q *queues.Queue) string {
	if q.Leaf {
		return string(q.Policies.ApplicationSort)
	}
	return string(config.SortFair)
}

// Percents yields how much of the limit is used, rounded down, for each limited type that is
// used at all, by name. Any use of a type limited to nothing is 100.
func Percents(used resources.Vector, limit resources.Limit) iter.Seq2[string, resources.Amount] {
	return func(yield func(string, resources.Amount) bool) {
		for name, most := range limit.All() {
			if u := used.Get(name); u > 0 && !yield(name, resources.Amount(PercentOf(u, most))) {
				return
			}
		}
	}
}

// PercentOf is used/of in percent, rounded down, at most the largest int64; 100 where there
// is nothing to divide by.
func PercentOf(used, of resources.Amount) int64 {
	if of <= 0 {
		return 100
	}
	hi, lo := bits.Mul64(uint64(max(used, 0)), 100)
	if hi >= uint64(of) {
		return math.MaxInt64
	}
	quotient, _ := bits.Div64(hi, lo, uint64(of))
	return int64(min(quotient, math.MaxInt64))
}
