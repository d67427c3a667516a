package integration

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// token makes a service account and returns a token of it.
func (e *env) token(name string) string {
	e.Helper()
	serviceAccount(e.T, e.ns, name)
	accounts := suite.client.CoreV1().ServiceAccounts(e.ns)
	request := expect.Get(accounts.CreateToken(e.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))(e)
	return request.Status.Token
}

// mayRead lets a service account get the paths.
func (e *env) mayRead(name string, paths ...string) {
	e.Helper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: e.ns + "-reader"},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: paths, Verbs: []string{"get"}}},
	}
	expect.Get(suite.client.RbacV1().ClusterRoles().Create(e.Context(), role, metav1.CreateOptions{}))(e)
	bindRole(e.T, e.ns, name, role.Name)
}

// TestRESTAccess serves over TLS to the users that the API server allows.
func TestRESTAccess(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	cert, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	expect.OK(t, err)
	for path, content := range map[string][]byte{certFile: cert, keyFile: key} {
		expect.OK(t, os.WriteFile(path, content, 0o600))
	}
	e := setup(t, oneLeaf("2"), queueSort("restTLSCertFile", certFile), queueSort("restTLSKeyFile", keyFile),
		queueSort("restAuthorization", "Delegated"))
	permitted, refused := e.token("permitted"), e.token("refused")
	e.mayRead("permitted", "/paddock/ws/v1/*")
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cert)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	ask := func(path, token string) (int, string) {
		request := expect.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+e.rest+path, http.NoBody))(e)
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := client.Do(request)
		if err != nil {
			return 0, err.Error()
		}
		defer response.Body.Close()
		body := expect.Get(io.ReadAll(response.Body))(e)
		return response.StatusCode, string(body)
	}
	const page = "/ws/v1/partition/default/queues"
	eventually(e, patience, "a permitted user reads the queues", func() (bool, string) {
		code, body := ask(page, permitted)
		return code == http.StatusOK && strings.Contains(body, "root.a"), body
	})
	for _, c := range []struct {
		path, token string
		want        int
		says        string
	}{
		{page, refused, http.StatusForbidden, "system:serviceaccount:" + e.ns + ":refused may not get the path /paddock" + page},
		{"/api/v1/holds", permitted, http.StatusForbidden, "may not get the path /paddock/api/v1/holds"},
		{page, "", http.StatusUnauthorized, "send a valid bearer token"},
		{page, "nonsense", http.StatusUnauthorized, "send a valid bearer token"},
	} {
		code, body := ask(c.path, c.token)
		var problem documents.Problem
		if err := json.Unmarshal([]byte(body), &problem); err != nil || code != c.want || !strings.Contains(problem.Description, c.says) {
			t.Errorf("%s: %d %s, want %d %q", c.path, code, body, c.want, c.says)
		}
	}
	if response, err := http.Get("http://" + e.rest + page); err == nil {
		_ = response.Body.Close()
		if response.StatusCode == http.StatusOK {
			t.Error("plain HTTP is answered, too")
		}
	}
}
