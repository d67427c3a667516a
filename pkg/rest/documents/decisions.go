package documents

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/record"
)

// defaultLimit is how many decisions, and holds that ended, are shown where the request
// does not say how many.
const defaultLimit = 100

// Decisions is the answer of GET /api/v1/decisions.
type Decisions struct {
	// Decisions are those made last, the last first.
	Decisions []*record.Decision `json:"decisions"`
	// Lost is how many steps were not recorded because there were too many at a time.
	Lost int64 `json:"lost,omitempty"`
}

// QueryOf reads which decisions or holds are wanted. More are the parameters beyond
// those that both have.
func QueryOf(v url.Values, more ...string) (record.Query, error) {
	known := append([]string{"namespace", "pod", "queue", "limit"}, more...)
	q := record.Query{Victim: v.Get("victim"), Namespace: v.Get("namespace"), Pod: v.Get("pod"), Queue: strings.ToLower(v.Get("queue")), Limit: defaultLimit}
	for name := range v {
		if !slices.Contains(known, name) {
			last := len(known) - 1
			return q, fmt.Errorf("there is no parameter %q; there are %s and %s", name, strings.Join(known[:last], ", "), known[last])
		}
	}
	if text := v.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n <= 0 {
			return q, fmt.Errorf("limit is %q; it is the number of entries that are wanted, 1 or more", text)
		}
		q.Limit = n
	}
	return q, nil
}
