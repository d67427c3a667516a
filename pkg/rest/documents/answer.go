package documents

import (
	"cmp"
	"net/http"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
)

// ClientHeader is sent by kubectl paddock. The API server's proxy passes on the Host of the
// API server, which can be any name. In browsers scripts cannot set a header with a name that
// begins with "Sec-", so a request with it does not come from a web page.
const ClientHeader = "Sec-Paddock-Client"

// defaultClusterID is what YuniKorn calls a cluster that was not given a name.
const defaultClusterID = "mycluster"

// ClusterID is the name that the configuration gives the cluster.
func ClusterID(v *inventory.View) string { return cmp.Or(v.Spec.ClusterID, defaultClusterID) }

// Problem is the body of an answer that is not what was asked for. Message is
// the same for all problems of a kind; Description is about this one.
type Problem struct {
	StatusCode  int    `json:"status_code"`
	Message     string `json:"message"`
	Description string `json:"description"`
}

// Refuse writes an error in YuniKorn's form.
func Refuse(w http.ResponseWriter, status int, message, description string) {
	SetHeader(w)
	w.WriteHeader(status)
	p := NewJSONWriter(w)
	p.Value(Problem{StatusCode: status, Message: message, Description: description})
	p.Done()
}

// Busy refuses a request that may succeed in a moment.
func Busy(w http.ResponseWriter, message, description string) {
	w.Header().Set("Retry-After", "10")
	Refuse(w, http.StatusServiceUnavailable, message, description)
}

// Answer writes a document as JSON.
func Answer(w http.ResponseWriter, body any) { Write(w, func(p *JSONWriter) { p.Value(body) }) }

// Write answers with what write writes.
func Write(w http.ResponseWriter, write func(p *JSONWriter)) {
	SetHeader(w)
	p := NewJSONWriter(w)
	write(p)
	p.Done()
}

// SetHeader sets the headers of a JSON answer that pages of other origins may read.
func SetHeader(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("X-Content-Type-Options", "nosniff")
}
