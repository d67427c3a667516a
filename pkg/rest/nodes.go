package rest

import (
	"maps"
	"net/http"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// node writes a node with the pods on it.
func (p *page) node(v *inventory.View, n *inventory.Node, labels map[string]string) {
	p.open('{')
	p.textField("nodeID", n.Name)
	p.textField("hostName", n.Name)
	p.attributes(n.Name, labels)
	p.amountsField("capacity", n.Allocatable)
	p.amountsField("allocated", n.Allocated)
	p.amountsField("occupied", n.Occupied)
	p.amountsField("available", n.Available())
	p.quotaField("utilized", percents(n.Allocated, resources.LimitFrom(n.Allocatable.Map())))
	p.allocations(n.Allocations)
	p.foreigners(n.Foreign)
	p.boolField("schedulable", n.Schedulable)
	p.reservations(v, n.Name)
	p.close('}')
}

// attributes writes what YuniKorn knows of a node beside amounts: its labels, and two
// entries of its own.
func (p *page) attributes(node string, labels map[string]string) {
	all := map[string]string{"si.io/hostname": node}
	maps.Copy(all, labels)
	all["si/node-partition"] = Partition
	p.key("attributes")
	p.open('{')
	for _, key := range slices.Sorted(maps.Keys(all)) {
		p.textField(key, all[key])
	}
	p.close('}')
}

// labelsOf returns the labels of a node.
func (s *Server) labelsOf(node string) map[string]string {
	if s.nodeLabels == nil {
		return nil
	}
	return s.nodeLabels(node)
}

// reservations writes the holders of a node.
func (p *page) reservations(v *inventory.View, node string) {
	var held []string
	for _, h := range v.Holds.On(node) {
		if asker := v.Holders[h.Asker]; asker != nil {
			held = append(held, asker.AppID+"|"+string(h.Asker))
		}
	}
	p.boolField("isReserved", len(held) > 0)
	p.textsField("reservations", held)
}

func (p *page) nodes(v *inventory.View, labels func(node string) map[string]string) {
	p.open('[')
	for _, n := range v.Nodes {
		if p.failed() {
			break
		}
		p.node(v, n, labels(n.Name))
	}
	p.close(']')
}

// nodes answers GET partition/{partition}/nodes.
func (s *Server) nodes(w http.ResponseWriter, _ *http.Request) {
	v := s.inventory.View()
	header(w)
	p := newPage(w)
	p.nodes(v, s.labelsOf)
	_ = p.done()
}

// node answers GET partition/{partition}/node/{node}.
func (s *Server) node(w http.ResponseWriter, r *http.Request) {
	v, name := s.inventory.View(), r.PathValue("node")
	n := v.Node(name)
	if n == nil {
		problem(w, http.StatusNotFound, "Node not found", "there is no node "+name)
		return
	}
	header(w)
	p := newPage(w)
	p.node(v, n, s.labelsOf(n.Name))
	_ = p.done()
}

// Utilizations is how much of each type nodes have in use, as YuniKorn's
// interface shows it.
type Utilizations struct {
	ClusterID    string        `json:"clusterId"`
	Partition    string        `json:"partition"`
	Utilizations []Utilization `json:"utilizations"`
}

// Utilization is one type.
type Utilization struct {
	Type        string   `json:"type"`
	Utilization []Bucket `json:"utilization"`
}

// Bucket is the nodes that use between one tenth and the next.
type Bucket struct {
	BucketName string   `json:"bucketName"`
	NumOfNodes int      `json:"numOfNodes,omitempty"`
	NodeNames  []string `json:"nodeNames,omitempty"`
}

var bucketNames = [...]string{
	"0-10%", "10-20%", "20-30%", "30-40%", "40-50%", "50-60%", "60-70%", "70-80%", "80-90%", "90-100%",
}

// utilizations counts the nodes by how much of them pods of queues use. A node at
// a limit is below it; one that has nothing of a type is not counted there.
func utilizations(nodes []*inventory.Node) []Utilization {
	byType := map[string][]Bucket{}
	var types []string
	for _, n := range nodes {
		for name, most := range n.Allocatable.All() {
			if most <= 0 {
				continue
			}
			buckets := byType[name]
			if buckets == nil {
				types = append(types, name)
				buckets = make([]Bucket, len(bucketNames))
				for i := range buckets {
					buckets[i].BucketName = bucketNames[i]
				}
				byType[name] = buckets
			}
			b := &buckets[tenth(n.Allocated.Get(name), most)]
			b.NumOfNodes++
			b.NodeNames = append(b.NodeNames, n.Name)
		}
	}
	slices.Sort(types)
	out := make([]Utilization, 0, len(types))
	for _, name := range types {
		out = append(out, Utilization{Type: name, Utilization: byType[name]})
	}
	return out
}

// tenth is the bucket of a node: 0 for at most a tenth, 9 for more than nine.
func tenth(used, most resources.Amount) int {
	i := 0
	for i < len(bucketNames)-1 && used > share(most, i+1) {
		i++
	}
	return i
}

// share is so many tenths of an amount, rounded down, without an overflow.
func share(most resources.Amount, tenths int) resources.Amount {
	n := resources.Amount(tenths)
	return most/10*n + most%10*n/10
}

// nodeUtilizations answers GET scheduler/node-utilizations.
func (s *Server) nodeUtilizations(w http.ResponseWriter, _ *http.Request) {
	v := s.inventory.View()
	answer(w, []Utilizations{{ClusterID: clusterID(v), Partition: Partition, Utilizations: utilizations(v.Nodes)}})
}
