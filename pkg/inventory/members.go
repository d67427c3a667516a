package inventory

// members are pods that have something in common, in no order. There are two such lists
// for every pod of a cluster, and a map would need six times as much of each.
type members struct {
	list  []*Pod
	place func(*Pod) *int32 // where a pod says that it is in the list
}

// Where a pod is among those of its application, and among those of its node.
func inApp(p *Pod) *int32  { return &p.inApp }
func inNode(p *Pod) *int32 { return &p.inNode }

// add adds a pod that is not there.
func (m *members) add(p *Pod) {
	*m.place(p) = int32(len(m.list))
	m.list = append(m.list, p)
}

// remove takes out a pod, if it is there. A wrong count of a reader must not end the
// scheduler.
func (m *members) remove(p *Pod) {
	if !m.has(p) {
		return
	}
	at, last := *m.place(p), len(m.list)-1
	m.list[at] = m.list[last]
	*m.place(m.list[at]) = at
	m.list[last] = nil
	m.list = m.list[:last]
}
