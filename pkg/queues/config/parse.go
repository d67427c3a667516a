package config

// Parse reads a queues.yaml document. A document with nothing but blanks and
// comments gives [Default]. Every other document gives a Spec, or an
// [*InvalidError] with everything that is wrong with it.
func Parse(document []byte) (*Spec, error) {
	var r report
	root := readDocument(document, &r)
	if root == nil {
		if err := r.err(); err != nil {
			return nil, err
		}
		return Default(), nil
	}
	partition := r.onePartition((&decoder{report: &r}).document(root))
	if partition == nil {
		return nil, r.err()
	}
	spec := &Spec{
		Rules:             r.partition(partition),
		PreemptionEnabled: partition.preemption,
		Checksum:          Checksum(document),
		Document:          string(document),
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	spec.Root = r.build(partition.root, nil)
	spec.Warnings = r.warnings.sorted("%d more warnings are not listed")
	return spec, nil
}

// partition checks the partition and gives its placement rules.
func (r *report) partition(p *rawPartition) []Rule {
	tree := p.root
	if tree == nil {
		r.errorf(place{path: p.path, key: "queues"}, p.line, "is not set: add it with at least the queue root")
		tree = &rawQueue{name: RootName, path: RootName, line: p.line}
	}
	r.partitionLimits(p, tree)
	complete := r.names(tree)
	r.rootQuotas(tree)
	r.quotas(tree, nil)
	r.inheritance(tree, 0)
	r.applications(tree)
	r.limits(tree)
	r.limitTree(tree)
	rules := r.rules(p.rules)
	if p.root != nil && complete {
		r.rulePaths(p.rules, tree)
	}
	return rules
}
