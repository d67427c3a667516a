package victims

import "fmt"

// Sentence renders the decision for people.
func (d Decision) Sentence() string { return d.String() }

// VictimNote is what people are told on a victim.
func (d Decision) VictimNote(i int) string {
	return fmt.Sprintf("preempted for %s/%s, queue %s", d.Ask.Namespace, d.Ask.Name, d.Victims[i].Queue)
}
