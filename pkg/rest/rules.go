package rest

import (
	"net/http"

	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// placementRules answers GET partition/{partition}/placementrules.
func (s *Server) placementRules(w http.ResponseWriter, _ *http.Request) {
	documents.Answer(w, documents.RulesOf(s.options.Inventory.View().Spec))
}
