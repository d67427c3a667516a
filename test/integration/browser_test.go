package integration

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	clientrest "k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/proxy"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/test/browser"
)

// kubectlProxy serves what "kubectl proxy --server=URL --insecure-skip-tls-verify
// --reject-paths='^/(ws|api)/' --token=TOKEN" serves, and returns its address.
func (e *env) kubectlProxy(token string) string {
	e.Helper()
	filter := &proxy.FilterServer{
		AcceptPaths: proxy.MakeRegexpArrayOrDie(proxy.DefaultPathAcceptRE), RejectPaths: proxy.MakeRegexpArrayOrDie("^/(ws|api)/"),
		AcceptHosts: proxy.MakeRegexpArrayOrDie(proxy.DefaultHostAcceptRE), RejectMethods: proxy.MakeRegexpArrayOrDie(proxy.DefaultMethodRejectRE),
	}
	to := &clientrest.Config{Host: "https://" + e.rest, BearerToken: token, TLSClientConfig: clientrest.TLSClientConfig{Insecure: true}}
	handler := expect.Get(proxy.NewProxyHandler("/", filter, to, 0, false))(e)
	server := httptest.NewServer(handler)
	e.Cleanup(server.Close)
	return server.URL
}

// stealing is a page of another site. It asks for pages of the scheduler, and shows what
// it got of each: nothing, where the browser or the server refuses.
const stealing = `<!DOCTYPE html><html lang="en"><title>waiting</title><script>
Promise.all(%s.map(u => fetch(u).then(r => r.text().then(t => r.status + ' ' + t), e => 'nothing'))).then(all => document.title = all.join('|'));
</script>`

// TestBrowserWithAuthorization: with restAuthorization Delegated a browser reads all pages
// through kubectl proxy, without a problem, and a page of another site that is open in the
// same browser reads none of them: the proxy lets it read no answer, and the scheduler
// refuses it, because its request has no token.
func TestBrowserWithAuthorization(t *testing.T) {
	e := setup(t, oneLeaf("2"), queueSort("restAuthorization", "Delegated"))
	token := e.token("reader")
	e.mayRead("reader", "/paddock/*")
	at := e.kubectlProxy(token)
	eventually(e, patience, "the reader may read", func() (bool, string) {
		_, err := fetch(e.Context(), http.DefaultClient, at+"/")
		return err == nil, fmt.Sprint(err)
	})
	b := expect.Get(browser.Start(e.Context()))(e)
	defer func() { e.ok(b.Close()) }()
	tab := expect.Get(b.Open(browser.Look{Width: 1400, Height: 900}))(e)
	for _, page := range []string{"", "?queue=root.a", "waiting", "nodes", "node?name=" + shared + "-0000", "decisions", "configuration", "health"} {
		e.ok(tab.Go(at + "/" + page))
		for _, problem := range tab.Problems() {
			t.Errorf("/%s: %s", page, problem)
		}
		if styled, err := browser.Eval[bool](tab, "document.styleSheets.length == 1 && document.styleSheets[0].cssRules.length > 10"); err != nil || !styled {
			t.Errorf("/%s has no style sheet: %v", page, err)
		}
	}
	targets := fmt.Sprintf("[%q, %q, %q]", at+"/", at+"/ws/v1/partition/default/queues", "https://"+e.rest+"/ws/v1/partition/default/queues")
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, stealing, targets)
	}))
	defer other.Close()
	e.ok(tab.Go(other.URL))
	eventually(e, patience, "the page of another site got no page", func() (bool, string) {
		title := expect.Get(browser.Eval[string](tab, "document.title"))(e)
		if title != "waiting" && !strings.HasPrefix(title, "nothing|nothing|401 ") {
			e.Fatalf("the page of another site got %s", title)
		}
		return title != "waiting", title
	})
}
