package preemption_test

import (
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/rest"
)

var manifestOf = regexp.MustCompile(`(?s)\n(?:preview|outcome)\n(.*?)\n----\n`)

// FuzzPreview sends anything as a manifest: it is refused with a sentence, or
// looked at, and nothing comes of it.
func FuzzPreview(f *testing.F) {
	text, err := os.ReadFile("testdata/preview/pods.txt")
	if err != nil {
		f.Fatal(err)
	}
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
	f.Fuzz(func(t *testing.T, manifest []byte) {
		out, err := pv.Preview(t.Context(), manifest)
		bad := (*rest.ManifestError)(nil)
		switch {
		case errors.As(err, &bad):
			if bad.Text == "" {
				t.Error("refused without a word")
			}
		case err != nil:
			t.Errorf("%v", err)
		case out.Outcome != rest.PreviewFits && out.Outcome != rest.PreviewWaits && out.Outcome != rest.PreviewPreempts || out.Summary == "":
			t.Errorf("outcome %q: %q", out.Outcome, out.Summary)
		default:
			if _, err := json.Marshal(out); err != nil {
				t.Error(err)
			}
		}
		if s := c.store.Snapshot(); s.Root().Applications != 4 {
			t.Errorf("%d applications", s.Root().Applications)
		}
	})
}
