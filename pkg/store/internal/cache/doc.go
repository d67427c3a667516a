// Package cache has what is, as opposed to what waits or is planned: where pods are, nodes,
// applications, disruption budgets, the resource types that count, the capacity of all
// nodes, and namespaces.
//
// Each type is a part of the store's state with its own rules and its own Check. Types
// have no lock and no clock: the store's mutex guards them, and times are arguments. They
// call nothing of the store. What a change means for other parts of the store is a result,
// or is collected until the store takes it.
package cache
