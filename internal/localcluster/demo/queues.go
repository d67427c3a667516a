package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// QueuesPath is where the scheduler's REST API serves the queues.
const QueuesPath = "/ws/v1/partition/default/queues"

// Amounts are resources by name: vcore in thousandths of a core, memory and storage in
// bytes, all others in units.
type Amounts map[string]int64

// Queue is a queue as the REST API shows it; fields that are not printed are left out.
type Queue struct {
	Name       string  `json:"queuename"`
	Guaranteed Amounts `json:"guaranteedResource"`
	Max        Amounts `json:"maxResource"`
	Allocated  Amounts `json:"allocatedResource"`
	Pending    Amounts `json:"pendingResource"`
	Children   []Queue `json:"children"`
}

// FetchQueues reads the queue tree from a scheduler; base is its address, "http://127.0.0.1:9080" for example.
func FetchQueues(ctx context.Context, base string) (*Queue, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+QueuesPath, nil)
	if err != nil {
		return nil, fmt.Errorf("read queues: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read queues: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read queues: %s answers %s", base+QueuesPath, response.Status)
	}
	return DecodeQueues(response.Body)
}

// DecodeQueues reads the answer of the REST API: one queue, the root, with its children.
func DecodeQueues(r io.Reader) (*Queue, error) {
	var root Queue
	if err := json.NewDecoder(r).Decode(&root); err != nil {
		return nil, fmt.Errorf("decode queues: %w", err)
	}
	if root.Name == "" {
		return nil, fmt.Errorf("decode queues: the answer has no queuename")
	}
	return &root, nil
}

// PrintQueues writes the tree as a table, one line per queue, children below their parent in the order given.
func PrintQueues(w io.Writer, root *Queue) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "QUEUE\tGUARANTEED\tMAX\tALLOCATED\tPENDING")
	root.print(t, 0)
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print queues: %w", err)
	}
	return nil
}

func (q *Queue) print(w io.Writer, depth int) {
	name := q.Name
	if depth > 0 {
		name = strings.Repeat("  ", depth) + name[strings.LastIndex(name, ".")+1:]
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", name, q.Guaranteed, q.Max, q.Allocated, q.Pending)
	for i := range q.Children {
		q.Children[i].print(w, depth+1)
	}
}

// String returns "2.5 cpu, 4Gi, 3 pods": cores, memory, then the rest by name. Zero
// amounts are left out; without any amount it is "-".
func (a Amounts) String() string {
	var parts []string
	for _, name := range a.order() {
		v := a[name]
		switch {
		case v == 0:
		case name == resources.CPU:
			parts = append(parts, resources.Format(resources.CPU, resources.Amount(v))+" cpu")
		case name == resources.Pods && v == 1:
			parts = append(parts, "1 pod")
		case name == resources.Memory:
			parts = append(parts, resources.Format(name, resources.Amount(v)))
		case name == "ephemeral-storage":
			parts = append(parts, resources.Format(name, resources.Amount(v))+" storage")
		default:
			parts = append(parts, fmt.Sprintf("%d %s", v, name))
		}
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}

func (a Amounts) order() []string {
	first := []string{resources.CPU, resources.Memory, resources.Pods}
	out := slices.Clone(first)
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if !slices.Contains(first, name) {
			out = append(out, name)
		}
	}
	return out
}
