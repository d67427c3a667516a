package documents

// PartitionRules are the placement rules of a partition, in a dump.
type PartitionRules struct {
	Partition string `json:"partition"`
	Rules     []Rule `json:"rules"`
}
