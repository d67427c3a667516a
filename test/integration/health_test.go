package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/rest"
)

// checkHealth waits until the scheduler has run its consistency check again, which it
// does from time to time, and checks that it passed. After a check that took long the
// next one is more than a minute away.
func (e *env) checkHealth(ctx context.Context) {
	e.Helper()
	called := time.Now()
	eventually(e, 8*patience, "the health of now is known", func() (bool, string) {
		request := expect.Get(http.NewRequestWithContext(ctx, http.MethodGet, "http://"+e.rest+"/ws/v1/scheduler/healthcheck", http.NoBody))(e)
		asked := time.Now()
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, err.Error()
		}
		defer response.Body.Close()
		body := expect.Get(io.ReadAll(response.Body))(e)
		age, err := strconv.Atoi(response.Header.Get("Age")) // elapsed whole seconds
		if err != nil || asked.Add(-time.Duration(age+1)*time.Second).Before(called) {
			return false, fmt.Sprintf("%s, %d s old: %s", response.Status, age, body)
		}
		var h rest.Health
		e.ok(json.Unmarshal(body, &h))
		if !h.Healthy {
			e.Errorf("the health check says %s", body)
		}
		return true, ""
	})
}
