package documents

import (
	"maps"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Node writes a node with the pods on it.
func (p *JSONWriter) Node(v *inventory.View, n *inventory.Node, labels map[string]string) {
	p.Open('{')
	p.TextField("nodeID", n.Name)
	p.TextField("hostName", n.Name)
	p.attributes(n.Name, labels)
	p.amountsField("capacity", n.Allocatable)
	p.amountsField("allocated", n.Allocated)
	p.amountsField("occupied", n.Occupied)
	p.amountsField("available", n.Available())
	p.quotaField("utilized", Percents(n.Allocated, resources.LimitFrom(n.Allocatable.Map())))
	p.podsField("allocations", n.Allocations, p.allocation)
	p.podsField("foreignAllocations", n.Foreign, p.foreign)
	p.podsField("foreign_allocations", n.Foreign, p.foreign) // the name of YuniKorn's design
	p.boolField("schedulable", n.Schedulable)
	p.reservations(v, n.Name)
	p.Close('}')
}

// attributes writes what YuniKorn knows of a node beside amounts: its labels, and two
// entries of its own.
func (p *JSONWriter) attributes(node string, labels map[string]string) {
	all := map[string]string{"si.io/hostname": node}
	maps.Copy(all, labels)
	all["si/node-partition"] = Partition
	p.Key("attributes")
	p.Open('{')
	for _, key := range slices.Sorted(maps.Keys(all)) {
		p.TextField(key, all[key])
	}
	p.Close('}')
}

// reservations writes the holders of a node.
func (p *JSONWriter) reservations(v *inventory.View, node string) {
	var held []string
	for _, h := range v.Holds.On(node) {
		if asker := v.InHolds[h.Asker]; asker != nil {
			held = append(held, asker.AppID+"|"+string(h.Asker))
		}
	}
	p.boolField("isReserved", len(held) > 0)
	p.TextsField("reservations", held)
}

// Nodes writes the list of nodes. Labels returns the labels of a node.
func (p *JSONWriter) Nodes(v *inventory.View, labels func(node string) map[string]string) {
	p.Open('[')
	for _, n := range v.Nodes {
		if p.Failed() {
			break
		}
		p.Node(v, n, labels(n.Name))
	}
	p.Close(']')
}

var bucketNames = [...]string{
	"0-10%", "10-20%", "20-30%", "30-40%", "40-50%", "50-60%", "60-70%", "70-80%", "80-90%", "90-100%",
}

// Utilizations writes the nodes by type of resource and by how much of it pods of queues use.
func (p *JSONWriter) Utilizations(v *inventory.View) {
	p.Open('[')
	p.Open('{')
	p.TextField("clusterId", ClusterID(v))
	p.TextField("partition", Partition)
	p.Key("utilizations")
	p.Open('[')
	tenths := v.Tenths()
	for _, name := range slices.Sorted(maps.Keys(tenths)) {
		p.Open('{')
		p.alwaysField("type", name)
		p.Key("utilization")
		p.Open('[')
		for i, nodes := range tenths[name] {
			p.Open('{')
			p.TextField("bucketName", bucketNames[i])
			p.NumberField("numOfNodes", int64(len(nodes)))
			p.TextsField("nodeNames", nodes)
			p.Close('}')
		}
		p.Close(']')
		p.Close('}')
	}
	p.Close(']')
	p.Close('}')
	p.Close(']')
}
