package integration

import (
	"encoding/json"
	"net/http"
)

// own requests a page below /api/v1.
func (e *env) own(page string, into any) {
	e.Helper()
	body, err := fetch(e.Context(), http.DefaultClient, "http://"+e.rest+"/api/v1/"+page)
	e.ok(err)
	e.ok(json.Unmarshal(body, into))
}
