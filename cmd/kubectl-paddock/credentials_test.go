package main

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// heard is a scheduler that answers nothing and remembers the credentials of requests.
type heard struct {
	*httptest.Server
	authorization []string
}

func hear(t *testing.T, start func(http.Handler) *httptest.Server) *heard {
	t.Helper()
	h := &heard{}
	h.Server = start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.authorization = append(h.authorization, r.Header.Get("Authorization"))
		expect.That(t, r.Header.Get(documents.ClientHeader) != "",
			"a request without the header by which the scheduler knows the plugin")
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprint(w, `{"status_code":403,"message":"Forbidden","description":"nobody may"}`)
	}))
	t.Cleanup(h.Close)
	return h
}

// file writes one and returns its path.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	expect.OK(t, os.WriteFile(path, []byte(text), 0o700)) //nolint:gosec // one of them is a program
	return path
}

func kubeconfigText(server, user string) string {
	return `apiVersion: v1
kind: Config
current-context: here
clusters: [{name: k, cluster: {server: "` + server + `"}}]
contexts: [{name: here, context: {cluster: k, user: u}}]
users: [{name: u, user: ` + user + `}]
`
}

func kubeconfigOf(t *testing.T, user string) string {
	t.Helper()
	return file(t, "config", kubeconfigText("https://127.0.0.1:1", user))
}

func authorityOf(t *testing.T, s *httptest.Server) string {
	t.Helper()
	return file(t, "ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
}

// ask runs the command line and returns what it said on standard error.
func ask(args ...string) string {
	var out, errs bytes.Buffer
	run(args, streams{in: strings.NewReader(""), out: &out, err: &errs})
	return errs.String()
}

// TestCredentialsOverHTTPS: each kind that a kubeconfig may have is sent.
func TestCredentialsOverHTTPS(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	plugin := file(t, "plugin", `#!/bin/sh
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"of-plugin"}}'
`)
	for _, tt := range []struct {
		name, user, want string
		args             []string
	}{
		{name: "token", user: "{token: of-user}", want: "Bearer of-user"},
		{name: "token of a file", user: "{tokenFile: " + file(t, "token", "of-file") + "}", want: "Bearer of-file"},
		{name: "plugin", user: "{exec: {apiVersion: client.authentication.k8s.io/v1, command: " + plugin + ", interactiveMode: Never}}", want: "Bearer of-plugin"},
		{name: "flag", user: "{token: of-user}", args: []string{"--token", "of-flag"}, want: "Bearer of-flag"},
		{name: "flag without a kubeconfig", args: []string{"--token", "of-flag"}, want: "Bearer of-flag"},
		{name: "no kubeconfig", want: ""},
		{name: "password", user: "{username: u, password: p}", want: ""}, // which the scheduler does not know
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := hear(t, httptest.NewTLSServer)
			args := append([]string{"queues", "--server", h.URL, "--certificate-authority", authorityOf(t, h.Server)}, tt.args...)
			if tt.user != "" {
				args = append(args, "--kubeconfig", kubeconfigOf(t, tt.user))
			}
			said := ask(args...)
			expect.Same(t, "sent", []string{tt.want}, h.authorization)
			expect.That(t, strings.Contains(said, "nobody may"), "said %s", said)
		})
	}
}

// TestLoginIsRenewed: where an OpenID login has no valid token, a new one is fetched, and the
// kubeconfig gets the refresh token that came with it.
func TestLoginIsRenewed(t *testing.T) {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"token_endpoint":"http://%s","access_token":"a","id_token":"of-login","refresh_token":"next"}`, r.Host)
	}))
	t.Cleanup(provider.Close)
	h := hear(t, httptest.NewTLSServer)
	login := kubeconfigOf(t, "{auth-provider: {name: oidc, config: {idp-issuer-url: '"+provider.URL+"', client-id: c, refresh-token: last}}}")
	said := ask("queues", "--server", h.URL, "--certificate-authority", authorityOf(t, h.Server), "--kubeconfig", login)
	expect.Same(t, "sent", []string{"Bearer of-login"}, h.authorization)
	expect.Says(t, said, "nobody may")
	expect.Says(t, string(expect.Get(os.ReadFile(login))(t)), "refresh-token: next")
}

// TestCredentialsStayAtHome: they go only to the server that was named, over HTTPS, with
// a certificate that is trusted.
func TestCredentialsStayAtHome(t *testing.T) {
	t.Setenv("KUBECONFIG", kubeconfigOf(t, "{token: secret}"))
	plain, trusted := hear(t, httptest.NewServer), hear(t, httptest.NewTLSServer)
	authority := authorityOf(t, trusted.Server)
	moved := httptest.NewTLSServer(http.RedirectHandler(trusted.URL, http.StatusTemporaryRedirect)) // the same certificate
	t.Cleanup(moved.Close)
	for _, tt := range []struct {
		name, says string
		args       []string
	}{
		{"plain HTTP", "nobody may", []string{"--server", plain.URL}},
		{"a token for plain HTTP", "over HTTPS only", []string{"--server", plain.URL, "--token", "secret"}},
		{"trust for plain HTTP", "are about HTTPS", []string{"--server", plain.URL, "--certificate-authority", authority}},
		{"no check for plain HTTP", "are about HTTPS", []string{"--server", plain.URL, "--insecure-skip-tls-verify"}},
		{"no check and one", "verifies nothing", []string{"--server", trusted.URL, "--insecure-skip-tls-verify", "--certificate-authority", authority}},
		{"not trusted", "--certificate-authority", []string{"--server", trusted.URL}},
		{"another name", "--tls-server-name", []string{"--server", trusted.URL, "--certificate-authority", authority, "--tls-server-name", "other.test"}},
		{"no such file", "--certificate-authority", []string{"--server", trusted.URL, "--certificate-authority", authority + "x"}},
		{"sent elsewhere", "307", []string{"--server", moved.URL, "--certificate-authority", authority}},
		{"as somebody else", "knows no impersonation", []string{"--server", trusted.URL, "--certificate-authority", authority, "--as", "ann"}},
		{"broken kubeconfig", "kubeconfig", []string{"--server", trusted.URL, "--certificate-authority", authority, "--context", "missing"}},
	} {
		said := ask(append([]string{"queues"}, tt.args...)...)
		expect.That(t, strings.Contains(said, tt.says), "%s: said %s, not %q", tt.name, said, tt.says)
	}
	expect.Same(t, "sent over HTTPS", 0, len(trusted.authorization))
	expect.Same(t, "sent over HTTP", []string{""}, plain.authorization)
	// The token goes to a server that is trusted, and to one that is not to be checked; else the
	// above proves nothing.
	for _, args := range [][]string{
		{"--certificate-authority", authority, "--tls-server-name", "example.com"},
		{"--insecure-skip-tls-verify"},
	} {
		ask(append([]string{"queues", "--server", trusted.URL}, args...)...)
	}
	expect.Same(t, "sent", []string{"Bearer secret", "Bearer secret"}, trusted.authorization)
}

// TestRefusals: a refused user is told which server refused, and what to do.
func TestRefusals(t *testing.T) {
	unknown := `{"status_code":401,"message":"Unauthorized","description":"send a valid bearer token"}`
	for _, tt := range []struct {
		name, server, body, says string
		status                   int
		method                   string
	}{
		{"unknown to the scheduler", "https://s", unknown, "--token", http.StatusUnauthorized, http.MethodGet},
		{"unknown behind the API server", "", unknown, "does not pass your credentials on", http.StatusUnauthorized, http.MethodGet},
		{"may not, says the scheduler", "https://s", `{"status_code":403,"message":"Forbidden","description":"ann may not"}`, "ann may not: ask an administrator", http.StatusForbidden, http.MethodGet},
		{"may read and not send, says the API server", "", `{"kind":"Status","message":"no"}`, "the verb create on services/proxy", http.StatusForbidden, http.MethodPost},
		{"HTTPS behind the API server", "", "Client sent an HTTP request to an HTTPS server.", "NAMESPACE/https:NAME:PORT", http.StatusBadRequest, http.MethodGet},
		{"the scheduler says why", "", `{"status_code":503,"message":"No preview","description":"not yet"}`, "answer 503 Service Unavailable: not yet", http.StatusServiceUnavailable, http.MethodGet},
		{"not a scheduler", "https://s", "<html>", "is this the scheduler's REST interface?", http.StatusForbidden, http.MethodGet},
	} {
		c := connection{server: tt.server, service: "a/b:1"}
		err := c.refused(tt.method, tt.status, []byte(tt.body))
		expect.That(t, strings.Contains(err.Error(), tt.says), "%s: %v, not %q", tt.name, err, tt.says)
	}
	for service, want := range map[string]string{"a/b:1": "b:1", "a/https:b:1": "https:b:1", "a/https:b": "https:b", "a/https:b:1:2": "", "a/b:c:1": "", "a/https::1": ""} {
		_, name, err := splitService(service)
		expect.That(t, name == want && (err != nil) == (want == ""), "%s: %q, %v", service, name, err)
	}
}
