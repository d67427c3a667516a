package preemption_test

import (
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

var manifestOf = regexp.MustCompile(`(?s)\n(?:preview|outcome)\n(.*?)\n----\n`)

// FuzzPreview sends arbitrary input as a manifest. It must be rejected with a message, or
// previewed, and must change nothing.
func FuzzPreview(f *testing.F) {
	text := expect.Get(os.ReadFile("testdata/preview/pods.txt"))(f)
	seeds := manifestOf.FindAllSubmatch(text, -1)
	if len(seeds) < 20 {
		f.Fatalf("%d seeds", len(seeds))
	}
	for _, seed := range seeds {
		f.Add(seed[1])
	}
	for _, seed := range []string{"", "\x00", "---\n---\n", "[]", "&a [*a]", "{kind: Pod, apiVersion: v1, metadata: null, spec: null}"} {
		f.Add([]byte(seed))
	}
	c, pv := previewCluster(f)
	// The process beside reads the same document, at some time. Ten seconds after the start it has
	// done so, also if it was before the document of the test.
	for end := time.Now().Add(10 * time.Second); c.store.Spec() == c.spec && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	before, _ := changed(c.store)
	f.Fuzz(func(t *testing.T, manifest []byte) {
		out, err := pv.Preview(t.Context(), manifest)
		bad := (*documents.ManifestError)(nil)
		switch {
		case errors.As(err, &bad):
			if bad.Text == "" {
				t.Error("refused without a word")
			}
		case err != nil:
			t.Errorf("%v", err)
		case out.Outcome != documents.PreviewFits && out.Outcome != documents.PreviewWaits && out.Outcome != documents.PreviewPreempts || out.Summary == "":
			t.Errorf("outcome %q: %q", out.Outcome, out.Summary)
		default:
			if _, err := json.Marshal(out); err != nil {
				t.Error(err)
			}
		}
		after, things := changed(c.store)
		if things > 0 || after.Queues != before.Queues || after.Holds != before.Holds || after.Counts != before.Counts {
			t.Errorf("%d pods, applications or nodes changed; counts before and after: %+v, %+v", things, before.Counts, after.Counts)
		}
	})
}

// changed returns what the store has, and how many pods, applications and nodes have
// changed in it since the last call.
func changed(s *store.Store) (now *output.Rest, things int) {
	for now == nil {
		c := s.TakeChanges(1000)
		things += len(c.GonePods) + len(c.GoneApps) + len(c.GoneNodes) + len(c.Pods) + len(c.Apps) + len(c.Nodes)
		now = c.Rest
	}
	return now, things
}
