package image

import (
	"archive/tar"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// newRegistry starts a registry that keeps what it gets until the test ends, and returns
// the name of an image there. It wants this user and password where they are not empty.
func newRegistry(t *testing.T, user, password string) string {
	t.Helper()
	keeps := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u, p, _ := r.BasicAuth()
		if u != user || p != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		keeps.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://") + "/paddock:1.0"
}

// archived writes an archive with a small program.
func archived(t *testing.T) (path, digest string) {
	t.Helper()
	all := expect.Get(Index(meta, compiled(t, source(t))))(t)
	path = filepath.Join(t.TempDir(), "image.tar")
	expect.OK(t, WriteArchive(path, all, imageName))
	want := expect.Get(all.Digest())(t)
	return path, want.String()
}

// TestPush pushes an archive as the page says, "make push", and pulls it again.
func TestPush(t *testing.T) {
	path, want := archived(t)
	reference := newRegistry(t, "ann", "secret")
	login := t.TempDir()
	t.Setenv("DOCKER_CONFIG", login)
	push := func() (string, error) {
		out, err := exec.CommandContext(t.Context(), "make", "--no-print-directory", "-C", "../../..", "push", "IMAGE="+reference, "ARCHIVE="+path).CombinedOutput()
		return string(out), err
	}
	out, err := push()
	expect.That(t, err != nil && (strings.Contains(out, "UNAUTHORIZED") || strings.Contains(out, "401")),
		"without a password: %v\n%s", err, out)
	config := `{"auths": {"` + strings.TrimSuffix(reference, "/paddock:1.0") + `": {"username": "ann", "password": "secret"}}}`
	expect.OK(t, os.WriteFile(filepath.Join(login, "config.json"), []byte(config), 0o600))
	out, err = push()
	if err != nil || !strings.Contains(out, want) {
		t.Fatalf("%v, want digest %s:\n%s", err, want, out)
	}
	checkPulled(t, reference, want)
}

func checkPulled(t *testing.T, reference, want string) {
	t.Helper()
	tag := expect.Get(name.NewTag(reference))(t)
	got := expect.Get(remote.Index(tag, remote.WithAuthFromKeychain(authn.DefaultKeychain)))(t)
	expect.Same(t, "what the registry has", want, expect.Get(got.Digest())(t).String())
	expect.Holds(t, validate.Index(got))
}

// TestWrongPushes checks that what is no image of ours, or has no tag, is not sent.
func TestWrongPushes(t *testing.T) {
	path, _ := archived(t)
	reference := newRegistry(t, "", "")
	leads := filepath.Join(t.TempDir(), "leads.tar")
	pack := func(h *tar.Header) {
		t.Helper()
		out := expect.Get(os.Create(leads))(t)
		w := tar.NewWriter(out)
		expect.OK(t, errors.Join(w.WriteHeader(h), w.Close(), out.Close()))
	}
	empty := filepath.Join(t.TempDir(), "empty.tar")
	expect.OK(t, os.WriteFile(empty, make([]byte, 1024), 0o600))
	pack(&tar.Header{Name: "../outside", Typeflag: tar.TypeReg})
	for _, c := range []struct{ path, reference, says string }{
		{path, "", "IMAGE=registry/name:tag"},
		{path, strings.TrimSuffix(reference, ":1.0"), "tag"},
		{path, reference + "@nonsense", "tag"},
		{filepath.Join(t.TempDir(), "missing.tar"), reference, `run "make image" first`},
		{empty, reference, "index.json"},
		{leads, reference, "outside of the layout"},
	} {
		t.Run(c.says, func(t *testing.T) { expect.Refused(Push(t.Context(), c.path, c.reference))(t, c.says) })
	}
	pack(&tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "/etc"})
	expect.Refused(Push(t.Context(), leads, reference))(t, "neither a directory nor a file")
	checkPulled(t, reference, expect.Get(Push(t.Context(), path, reference))(t).String())
}
