package hack

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// checkPatch returns nil where a patch fits the files in a directory, and else what git
// says. Nothing is written. The directory need not be of a repository.
func checkPatch(ctx context.Context, dir string, patch []byte) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	git := exec.CommandContext(ctx, "git", "apply", "--check")
	// In a part of some other repository git would leave out what is not below that part.
	git.Dir, git.Env = dir, append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	git.Stdin = bytes.NewReader(patch)
	if text, err := git.CombinedOutput(); err != nil {
		return fmt.Errorf("git apply --check: %w\n%s", err, text)
	}
	return nil
}

// TestPatchesFit: the changes known for other versions of Kubernetes fit the files as
// they are. That all of it builds with them is for make compat to say.
func TestPatchesFit(t *testing.T) {
	patches := expect.Get(filepath.Glob(filepath.Join("compat", "*.patch")))(t)
	expect.That(t, len(patches) > 0, "there is no patch in hack/compat")
	for _, name := range patches {
		patch := expect.Get(os.ReadFile(name))(t)
		err := checkPatch(t.Context(), "..", patch)
		expect.That(t, err == nil, "%s does not fit: make it anew (docs/upgrade.md): %v", name, err)
		patch = bytes.Replace(patch, []byte("\n "), []byte("\n not "), 1)
		expect.That(t, checkPatch(t.Context(), "..", patch) != nil, "%s fits with a line that is in no file", name)
	}
}
