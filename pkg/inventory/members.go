package inventory

// members are the pods of one application or one node, in no order. Every pod of a cluster
// is in two such lists. A map would need six times the memory.
type members struct {
	list  []*Pod
	place func(*Pod) *int32 // the field of a pod with its index in the list
}

// inApp and inNode are the indexes of a pod in the lists of its application and its node.
func inApp(p *Pod) *int32  { return &p.inApp }
func inNode(p *Pod) *int32 { return &p.inNode }

// add adds a pod that is not there.
func (m *members) add(p *Pod) {
	*m.place(p) = int32(len(m.list))
	m.list = append(m.list, p)
}

func (m *members) has(p *Pod) bool {
	at := int(*m.place(p))
	return at < len(m.list) && m.list[at] == p
}

// remove removes a pod. It does nothing if the pod is not in the list, because an error in
// the inventory must not end the scheduler.
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
