package order

import "github.com/paddock-scheduler/paddock/pkg/resources"

// Request returns what each ask of the group requests.
func (g *AskGroup) Request() resources.Vector { return g.request }
