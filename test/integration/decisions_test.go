package integration

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// own requests a page below /api/v1.
func (e *env) own(page string, into any) {
	e.Helper()
	body, err := fetch(e.Context(), http.DefaultClient, "http://"+e.rest+"/api/v1/"+page)
	e.ok(err)
	e.ok(json.Unmarshal(body, into))
}

// decision waits until the last decision about a pod fulfils a condition.
func (e *env) decision(pod, what string, wanted func(*record.Decision) bool) *record.Decision {
	e.Helper()
	var found *record.Decision
	eventually(e, patience, fmt.Sprintf("the last decision about %s is %s", pod, what), func() (bool, string) {
		var list documents.Decisions
		e.own("decisions?limit=1&pod="+pod, &list)
		if len(list.Decisions) == 0 {
			return false, "none"
		}
		found = list.Decisions[0]
		return wanted(found), fmt.Sprintf("%+v", *found)
	})
	return found
}
