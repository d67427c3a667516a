package integration

import (
	"fmt"
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// TestRestartAmongInventedTypes kills the scheduler while a tenant makes pods with 60
// invented types of resources each, all different. The scheduler that is started then
// knows all of these pods, has none of the types in its books, and places pods of others. A
// pod with 65 types is told why it waits.
func TestRestartAmongInventedTypes(t *testing.T) {
	const many = 100
	e := setup(t, teamQueues)
	invented := inventedTypes(60)
	create := func(first int) {
		for i := first; i < first+many/2; i++ {
			e.createPod(e.pod(fmt.Sprintf("evil-%d", i), "evil", inQueue("root.evil"), invented(i)))
		}
	}
	create(0)
	e.kill()
	create(many / 2)
	other := e.create("other", 1, inQueue("root.team"))[0]
	e.start()
	e.awaitRunning(other)
	e.awaitQueue("root.evil", "counts all pods, and none of their types", func(q *documents.Queue) bool {
		return len(q.PendingResource) == 1 && q.PendingResource["pods"] == many
	})
	e.expect("evil", 0, many, "")
	e.awaitRefused(e.create("large", 1, inQueue("root.team"), inventedTypes(65)(0))[0], reasons.TooManyResourceTypes)
}
