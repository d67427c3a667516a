// Package judge judges the decisions of package search by the seven laws, on a state that
// may be newer. It shares no code with the search: it adds up what the victims take from
// each queue, and applies each law to the sums and to each victim.
//
//	lawful.go the laws: [Lawful]; law 2 is guarantees, with law2 and shortages, law 4 is law4
//	group.go  laws 2 and 4 for an asker that starts together with a group
//	room.go   whether enough is freed on the node and below each max
package judge
