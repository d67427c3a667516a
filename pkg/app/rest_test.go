package app

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	clientrest "k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/rest"
)

// pair writes a certificate for a host, and its key.
func pair(t *testing.T, dir, host string) (certFile, keyFile string) {
	t.Helper()
	cert, key, err := certutil.GenerateSelfSignedCertKey(host, nil, nil)
	expect.OK(t, err)
	certFile, keyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for path, content := range map[string][]byte{certFile: cert, keyFile: key} {
		expect.OK(t, errors.Join(os.WriteFile(path+".new", content, 0o600), os.Rename(path+".new", path)))
	}
	return certFile, keyFile
}

// hostOf is the host that a certificate is for.
func hostOf(t *testing.T, c *tls.Config) string {
	t.Helper()
	served := expect.Get(c.GetConfigForClient(&tls.ClientHelloInfo{ServerName: "any"}))(t)
	return served.Certificates[0].Leaf.DNSNames[0]
}

func TestCertificateIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := pair(t, dir, "old.example")
	c := expect.Get(servingTLS(t.Context(), certFile, keyFile))(t)
	expect.Same(t, "the host of the certificate", "old.example", hostOf(t, c))
	pair(t, dir, "new.example")
	plugintest.Becomes(t, "the host then", "new.example", func() string { return hostOf(t, c) })
	expect.OK(t, os.WriteFile(certFile, []byte("no certificate"), 0o600))
	expect.Same(t, "the host after a bad one", "new.example", hostOf(t, c))
}

// TestOwnCertificate: with authorization and without files the certificate is for the names
// under which clients may ask.
func TestOwnCertificate(t *testing.T) {
	t.Setenv(config.PodNamespaceEnv, "queues")
	names := restHosts(&config.QueueSortArgs{RESTAddress: new("paddock.example.com:9080"), RESTHosts: []string{"mine"}})
	c := expect.Get(selfSignedTLS(names))(t)
	pair := c.Certificates[0]
	for _, name := range []string{
		"localhost", "127.0.0.1", "::1", "yunikorn-service", "yunikorn-service.queues.svc", "mine.queues.svc.cluster.local", "paddock.example.com",
	} {
		expect.Holds(t, pair.Leaf.VerifyHostname(name))
	}
	expect.That(t, pair.Leaf.VerifyHostname("evil.example") != nil && c.MinVersion == tls.VersionTLS12,
		"the certificate is for any name, or TLS for any version")
}

func TestBadCertificatesAreNamed(t *testing.T) {
	certFile, keyFile := pair(t, t.TempDir(), "a")
	_, other := pair(t, t.TempDir(), "b")
	for name, files := range map[string][2]string{"absent": {"/no/such/file", keyFile}, "key of another": {certFile, other}, "swapped": {keyFile, certFile}} {
		_, err := servingTLS(t.Context(), files[0], files[1])
		expect.Says(t, fmt.Sprint(name, ": ", err), "restTLSCertFile", files[0])
	}
}

// reviewer is an API server that knows two tokens, one of which may get /ws/v1/queues.
type reviewer struct {
	asked atomic.Int64
	mute  atomic.Bool
	last  atomic.Pointer[authorizationv1.SubjectAccessReviewSpec]
}

func (v *reviewer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.asked.Add(1)
	w.Header().Set("Content-Type", "application/json")
	if v.mute.Load() {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/tokenreviews") {
		var review authenticationv1.TokenReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		if token := review.Spec.Token; token == "anna" || token == "otto" {
			review.Status.Authenticated, review.Status.User = true, authenticationv1.UserInfo{
				Username: token, UID: "7", Groups: []string{"readers"},
				Extra: map[string]authenticationv1.ExtraValue{"scope": {"few", "more"}},
			}
		}
		_ = json.NewEncoder(w).Encode(review)
		return
	}
	var review authorizationv1.SubjectAccessReview
	_ = json.NewDecoder(r.Body).Decode(&review)
	v.last.Store(&review.Spec)
	path := review.Spec.NonResourceAttributes
	review.Status.Allowed = review.Spec.User == "anna" && path != nil && path.Verb == "get" && path.Path == "/paddock/ws/v1/queues"
	_ = json.NewEncoder(w).Encode(review)
}

// serve starts an API server and returns how a guard asks it.
func serve(t *testing.T, h http.Handler) *clientrest.Config {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return &clientrest.Config{Host: server.URL, ContentConfig: clientrest.ContentConfig{ContentType: "application/json"}}
}

// bearer is a request with a token.
func bearer(ctx context.Context, method, path, token string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, method, path, nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}

func TestGuardAsksTheAPIServer(t *testing.T) {
	v := &reviewer{}
	g := expect.Get(newGuard(serve(t, v), reviewTimeout))(t)
	ask := func(method, path, token string) error { return g.admit(bearer(t.Context(), method, path, token)) }
	for _, c := range []struct {
		method, path, token string
		want                error
	}{
		{"GET", "/ws/v1/queues", "anna", nil}, {"POST", "/ws/v1/queues", "anna", nil},
		{"GET", "/ws/v1/nodes", "anna", rest.ErrForbidden}, {"GET", "/ws/v1/queues", "otto", rest.ErrForbidden},
		{"GET", "/ws/v1/queues", "eve", rest.ErrUnknown}, {"GET", "/ws/v1/queues", "", rest.ErrUnknown},
	} {
		err := ask(c.method, c.path, c.token)
		expect.That(t, errors.Is(err, c.want), "%+v: %v", c, err)
	}
	expect.Fails(t, ask("GET", "/ws/v1/nodes", "otto"), "otto may not get the path /paddock/ws/v1/nodes")
	asked := authorizationv1.NonResourceAttributes{Path: "/paddock/ws/v1/nodes", Verb: "get"}
	expect.Same(t, "all that is known is sent: a role may be bound to a group", authorizationv1.SubjectAccessReviewSpec{
		NonResourceAttributes: &asked, User: "otto", UID: "7", Groups: []string{"readers", "system:authenticated"},
		Extra: map[string]authorizationv1.ExtraValue{"scope": {"few", "more"}},
	}, *v.last.Load())
	before := v.asked.Load()
	expect.OK(t, ask("GET", "/ws/v1/queues", "anna"))
	expect.That(t, v.asked.Load() == before, "asked again within %s", verdictKept)
	v.mute.Store(true)
	err := ask("GET", "/ws/v1/other", "anna")
	expect.That(t, err != nil && !errors.Is(err, rest.ErrForbidden), "the API server does not say: %v", err)
}

// TestAnOutageIsNoBadToken: a token is reported as bad only if the API server says so.
func TestAnOutageIsNoBadToken(t *testing.T) {
	silence := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only after that it is seen that the client goes
		<-r.Context().Done()
	}
	silent := serve(t, http.HandlerFunc(silence))
	knows := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/tokenreviews") {
			(&reviewer{}).ServeHTTP(w, r)
			return
		}
		silence(w, r)
	}))
	shut := httptest.NewServer(http.NotFoundHandler())
	shut.Close()
	says := func(status authenticationv1.TokenReviewStatus) *clientrest.Config {
		return serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(authenticationv1.TokenReview{Status: status})
		}))
	}
	refuses := &reviewer{}
	refuses.mute.Store(true)
	for name, c := range map[string]struct {
		server  *clientrest.Config
		timeout time.Duration
		unknown bool
		told    string
	}{
		"silent":              {silent, 50 * time.Millisecond, false, "TokenReview failed"},
		"knows the token":     {knows, 200 * time.Millisecond, false, "SubjectAccessReview for anna failed"},
		"gone":                {&clientrest.Config{Host: shut.URL}, reviewTimeout, false, "TokenReview failed"},
		"refuses the process": {serve(t, refuses), reviewTimeout, false, "TokenReview failed"},
		"says no":             {says(authenticationv1.TokenReviewStatus{}), reviewTimeout, true, ""},
		"says no and why":     {says(authenticationv1.TokenReviewStatus{Error: "token has expired"}), reviewTimeout, true, "token has expired"},
	} {
		t.Run(name, func(t *testing.T) {
			g := expect.Get(newGuard(c.server, c.timeout))(t)
			err := g.admit(bearer(t.Context(), http.MethodGet, "/ws/v1/queues", "anna"))
			expect.Fails(t, err, c.told)
			expect.Same(t, "an error about the token", c.unknown, errors.Is(err, rest.ErrUnknown))
			expect.Same(t, "an answer", false, errors.Is(err, rest.ErrForbidden))
		})
	}
}

// TestInventedTokensDoNotShutKnownReadersOut: unknown readers send more tokens than may be
// reviewed. A known reader is answered at once, and an unknown one is not.
func TestInventedTokensDoNotShutKnownReadersOut(t *testing.T) {
	g := expect.Get(newGuards(serve(t, &reviewer{}), reviewTimeout))(t)
	ask := func(token string, known bool, patience time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return g.Admit(bearer(ctx, http.MethodGet, "/ws/v1/queues", token), known)
	}
	answers := make(chan error, 200)
	for i := range cap(answers) {
		go func() { answers <- ask(fmt.Sprint("invented-", i), false, 4*time.Second) }()
	}
	for errors.Is(<-answers, rest.ErrUnknown) { // until one is refused: reviews are taken for 4 s
	}
	err := ask("anna", false, time.Second)
	expect.That(t, err != nil && !errors.Is(err, rest.ErrUnknown),
		"an unknown reader gets %v: this test proves nothing", err)
	expect.OK(t, ask("anna", true, time.Second))
}
