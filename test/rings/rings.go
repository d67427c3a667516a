package rings

import (
	"slices"
	"strings"
)

// Module is the path of this module.
const Module = "github.com/paddock-scheduler/paddock"

// Ring is a layer of the architecture. A package imports from its own ring and
// from lower ones.
type Ring int

const (
	// Quantities have no queues, pods or nodes.
	Quantities Ring = iota
	// Model is what queues are.
	Model
	// Decisions are what follows from a snapshot.
	Decisions
	// Live holds state, and speaks to the API server.
	Live
	// Adapters translate between the inside and everybody else.
	Adapters
	// Programs wire.
	Programs
	// Tests may import everything, and only tests import them.
	Tests
)

// table gives packages their ring, by path below the module. The longest entry
// that is the package or a directory above it counts.
var table = map[string]Ring{
	"pkg/resources":         Quantities,
	"pkg/reasons":           Quantities,
	"pkg/queues":            Model,
	"pkg/queues/config":     Model,
	"pkg/queues/internal":   Model,
	"pkg/queues/placement":  Model,
	"pkg/queues/order":      Decisions,
	"pkg/queues/forecast":   Decisions,
	"pkg/queues/unmet":      Decisions,
	"pkg/victims":           Decisions,
	"pkg/reservations":      Decisions,
	"pkg/queues/store":      Live,
	"pkg/informer":          Live,
	"pkg/eventlog":          Live,
	"pkg/inventory":         Live,
	"pkg/evict":             Live,
	"pkg/record":            Live,
	"pkg/audit":             Live,
	"pkg/leader":            Live,
	"pkg/plugins":           Adapters,
	"pkg/rest":              Adapters,
	"pkg/web":               Adapters,
	"pkg/metrics":           Adapters,
	"pkg/events":            Adapters,
	"apis/config":           Adapters,
	"manifests":             Adapters,
	"hack":                  Tests,
	"cmd":                   Programs,
	"internal":              Programs,
	"internal/scenario":     Tests,
	"test":                  Tests,
	"pkg/queues/queuestest": Tests,
	"pkg/web/webtest":       Tests,
}

// RingOf returns the ring of a package of this module. It is false if the table
// has none.
func RingOf(path string) (Ring, bool) {
	below := strings.TrimPrefix(path, Module+"/")
	for dir := below; dir != ""; dir = parent(dir) {
		if ring, ok := table[dir]; ok {
			return ring, exact(dir, below)
		}
	}
	return 0, false
}

// exact refuses a package below one that stands for itself: pkg/queues has rings
// for each package in it, so a new one must be given its own.
func exact(dir, below string) bool {
	return dir == below || !slices.Contains([]string{"pkg/queues"}, dir)
}

func parent(dir string) string {
	return dir[:max(strings.LastIndexByte(dir, '/'), 0)]
}

// pure returns whether a ring decides without clock, chance, log, client, lock
// and goroutine.
func pure(ring Ring) bool { return ring <= Decisions }
