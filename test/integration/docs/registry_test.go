package docs

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// registry is the part of an image registry that a push needs. It accepts content that
// has the checksum of its name.
type registry struct {
	mu       sync.Mutex
	uploads  map[string][]byte // by path
	contents map[string]bool   // paths of existing blobs and manifests
}

func newRegistry() *registry {
	return &registry{uploads: map[string][]byte{}, contents: map[string]bool{}}
}

var uploadOf = regexp.MustCompile(`^(/v2/.+/blobs/)uploads/$`)

func (r *registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	body, err := io.ReadAll(request.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	path := request.URL.Path
	switch {
	case path == "/v2/":
	case request.Method == http.MethodHead || request.Method == http.MethodGet:
		if !r.contents[path] {
			http.NotFound(w, request)
		}
	case request.Method == http.MethodPost && uploadOf.MatchString(path):
		place := fmt.Sprintf("%s%d", path, len(r.uploads))
		r.uploads[place] = nil
		w.Header().Set("Location", place)
		w.WriteHeader(http.StatusAccepted)
	case request.Method == http.MethodPatch:
		r.uploads[path] = append(r.uploads[path], body...)
		w.Header().Set("Location", path)
		w.WriteHeader(http.StatusAccepted)
	case request.Method == http.MethodPut && strings.Contains(path, "/uploads/"):
		repository, _, _ := strings.Cut(path, "uploads/")
		r.take(w, repository, append(r.uploads[path], body...), request.URL.Query().Get("digest"))
	case request.Method == http.MethodPut && strings.Contains(path, "/manifests/"):
		r.contents[path] = true
		w.WriteHeader(http.StatusCreated)
	default:
		http.Error(w, "not known here", http.StatusMethodNotAllowed)
	}
}

// take stores a blob of a repository, if it has the checksum of its name.
func (r *registry) take(w http.ResponseWriter, repository string, blob []byte, digest string) {
	if got := fmt.Sprintf("sha256:%x", sha256.Sum256(blob)); got != digest {
		http.Error(w, "digest "+digest+" of what is "+got, http.StatusBadRequest)
		return
	}
	r.contents[repository+digest] = true
	w.WriteHeader(http.StatusCreated)
}

// TestRegistry pushes a right and a wrong blob.
func TestRegistry(t *testing.T) {
	server := httptest.NewServer(newRegistry())
	defer server.Close()
	send := func(method, path, body string) (status int, location string) {
		request := expect.Get(http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body)))(t)
		response, err := http.DefaultClient.Do(request)
		expect.OK(t, err)
		expect.OK(t, response.Body.Close())
		return response.StatusCode, response.Header.Get("Location")
	}
	const blob, digest = "text", "sha256:982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1"
	_, place := send(http.MethodPost, "/v2/a/blobs/uploads/", "")
	send(http.MethodPatch, place, blob)
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{http.MethodHead, "/v2/a/blobs/" + digest, http.StatusNotFound},
		{http.MethodPut, place + "?digest=sha256:00", http.StatusBadRequest},
		{http.MethodPut, place + "?digest=" + digest, http.StatusCreated},
		{http.MethodHead, "/v2/a/blobs/" + digest, http.StatusOK},
		{http.MethodHead, "/v2/b/blobs/" + digest, http.StatusNotFound},
		{http.MethodDelete, "/v2/a/blobs/" + digest, http.StatusMethodNotAllowed},
	} {
		if got, _ := send(c.method, c.path, ""); got != c.status {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, got, c.status)
		}
	}
}
