package rest

import (
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// explain answers GET /api/v1/pods/{namespace}/{name}/explain.
func (s *Server) explain(w http.ResponseWriter, r *http.Request) {
	namespace, name := r.PathValue("namespace"), r.PathValue("name")
	if p := s.options.Inventory.Find(namespace, name); p != nil {
		if x, known := s.options.Explainer.Explanation(p.UID, s.options.Clock.Now()); known {
			out := documents.ExplanationOf(x)
			s.remember(out, p.UID)
			if s.standsBy() {
				out.StandBy()
			}
			documents.Answer(w, out)
			return
		}
	}
	documents.Refuse(w, http.StatusNotFound, documents.PodNotFound, fmt.Sprintf("the scheduler knows no pod %s/%s: there is none, or it has ended, "+
		"or it is for another scheduler to place. Look at: kubectl get pod -n %s %s. If it was preempted, the decision is at: "+
		"kubectl paddock decisions --victim %s (/api/v1/decisions?victim=%s)", namespace, name, namespace, name, name, url.QueryEscape(name)))
}

// remember adds what the record has of a pod.
func (s *Server) remember(out *documents.Explanation, uid types.UID) {
	if out.MakesRoomFor != nil {
		out.Chosen(s.options.Record.Choosing(uid), uid)
	}
	out.LastDecision = s.options.Record.Last(uid)
	out.LastHold = s.options.Record.EndedOf(uid)
}
