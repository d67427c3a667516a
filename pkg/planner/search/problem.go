package search

import (
	"cmp"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues"
)

// problem is the planning problem of one asker in a snapshot.
type problem struct {
	snapshot *planner.Snapshot
	ask      *planner.Ask
	app      uint32 // hash of ask.App
	params   planner.Params

	accounts []*account   // in order of their first use
	byQueue  []*account   // by queue ID
	paths    []*pathToLCA // by index of the leaf

	path   []*account      // from root to the ask's leaf
	fence  int             // depth of the fence root (law 7)
	shifts []priorityShift // by depth: priority shift of the ask on the path strictly below it
	// typesByName are all types sorted by name; wanted are those that the asker requests.
	typesByName, wanted []int
	// over is what must be freed below queues with a max that the asker would exceed,
	// from root down.
	over []goal
	// requests are, by depth, those of the asker and of its group below the queue; nil without
	// a group.
	requests []planner.Share
	// higher is the pod that law 6 protects by the smallest difference of priority.
	higher *planner.Victim
}

// goal is an amount of a type that must be freed.
type goal struct {
	typ    int
	amount int64
	// depth is the depth of the queue on the ask's path below which it must be freed; 0
	// means on the node.
	depth int
}

// newProblem returns the problem, or false if the ask's queue does not exist.
func newProblem(snapshot *planner.Snapshot, ask *planner.Ask, p planner.Params) (*problem, bool) {
	s := &problem{snapshot: snapshot, ask: ask, app: planner.HashApp(ask.App), params: p}
	for q := snapshot.Queues.Queue(ask.Leaf); q != nil; q = snapshot.Queues.Queue(q.Parent) {
		s.path = append(s.path, s.account(q))
	}
	slices.Reverse(s.path)
	s.shifts = make([]priorityShift, len(s.path))
	var l priorityShift
	for d := len(s.path) - 1; d >= 0; d-- {
		s.path[d].depth = d
		s.shifts[d] = l
		l = l.then(s.path[d].queue.Policies)
		if s.fence == 0 && s.path[d].queue.IsFence() {
			s.fence = d
		}
	}
	for t := range snapshot.Types {
		s.typesByName = append(s.typesByName, t)
		if ask.Request.At(t) > 0 {
			s.wanted = append(s.wanted, t)
		}
	}
	slices.SortFunc(s.typesByName, func(a, b int) int { return cmp.Compare(snapshot.Types[a], snapshot.Types[b]) })
	s.findOver()
	s.findRequests()
	return s, len(s.path) > 0
}

// findOver finds the queues with a max that the asker would exceed. Root has no max.
func (s *problem) findOver() {
	for d := 1; d < len(s.path); d++ {
		a := s.path[d]
		for _, t := range s.wanted {
			most, limited := a.queue.Max.Get(s.snapshot.Types[t])
			if !limited {
				continue
			}
			if over := planner.Minus(planner.Plus(a.expected[t], s.ask.Request.At(t)), int64(most)); over > 0 {
				s.over = append(s.over, goal{t, over, d})
			}
		}
	}
}

// goals appends what the asker lacks on a node and below queues over their max.
func (s *problem) goals(to []goal, n *planner.Node) []goal {
	for _, t := range s.wanted {
		if lack := planner.Minus(s.ask.Request.At(t), n.Free.At(t)); lack > 0 {
			to = append(to, goal{t, lack, 0})
		}
	}
	return append(to, s.over...)
}

// contested appends the contested types S: the types of the goals or, without goals, all
// that the asker requests.
func (s *problem) contested(to []int, goals []goal) []int {
	if len(goals) == 0 {
		return append(to, s.wanted...)
	}
	for _, g := range goals {
		if !slices.Contains(to, g.typ) {
			to = append(to, g.typ)
		}
	}
	slices.Sort(to)
	return to
}

// account is a queue with its amounts as lists.
type account struct {
	queue      *queues.Queue
	index      int // in problem.accounts
	depth      int // on the ask's path; -1 elsewhere
	used       []int64
	expected   []int64 // used and arriving
	has        []int64 // what counts for law 4, see queues.Queue.Has
	guaranteed []int64
	named      []bool // types that the queue guarantees, with 0 or more
	tight      []bool // types in which the queue stopped a set of victims (law 2)
}

// isOver reports whether the queue uses more of a type than its guarantee.
func (a *account) isOver(t int) bool { return a.used[t] > a.guaranteed[t] }

// account returns the amounts of a queue.
func (s *problem) account(q *queues.Queue) *account {
	s.byQueue = grown(s.byQueue, int(q.ID))
	if a := s.byQueue[q.ID]; a != nil {
		return a
	}
	n := len(s.snapshot.Types)
	a := &account{
		queue:      q,
		index:      len(s.accounts),
		depth:      -1,
		used:       make([]int64, n),
		expected:   make([]int64, n),
		has:        make([]int64, n),
		guaranteed: make([]int64, n),
		named:      make([]bool, n),
		tight:      make([]bool, n),
	}
	used, expected, has := q.Used(), q.Expected(), q.Has()
	for t, name := range s.snapshot.Types {
		a.used[t], a.expected[t], a.has[t] = int64(used.Get(name)), int64(expected.Get(name)), int64(has.Get(name))
		if g, ok := q.Guaranteed.Get(name); ok {
			a.guaranteed[t], a.named[t] = int64(g), true
		}
	}
	s.byQueue[q.ID] = a
	s.accounts = append(s.accounts, a)
	return a
}

// grown returns a list that is long enough for the index.
func grown[T any](list []T, index int) []T {
	if index < len(list) {
		return list
	}
	return append(list, make([]T, index+1-len(list))...)
}
