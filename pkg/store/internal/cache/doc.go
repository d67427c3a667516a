// Package cache has what is, as opposed to what waits or is planned: where pods are, nodes,
// applications, disruption budgets, the resource types that count, the capacity of all
// nodes, and namespaces.
//
//	Pod, Node, Nodes  where pods are, what they use, and which nodes changed for plans
//	App, Apps         applications, and which of them a new pod joins
//	Originators       the pods that an application cannot run without
//	Books             usage of queues, users and groups; the verdict of quotas
//	Protection        opt-outs and disruption budgets
//	ResourceTypes, Capacity, Namespaces, EmptyQueues
//
// Each type is a part of the store's state with its own rules and its own Check. Types
// have no lock and no clock: the store's mutex guards them, and times are arguments. They
// call nothing of the store. What a change means for other parts of the store is a result,
// or is collected until the store takes it.
package cache
