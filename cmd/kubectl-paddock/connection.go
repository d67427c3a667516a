package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// Where the REST interface has the tree of queues, and the configuration in force.
const (
	queuesPath = "/ws/v1/partition/default/queues"
	configPath = "/ws/v1/config"
)

// Where it has what YuniKorn's does not.
const (
	decisionsPath = "/api/v1/decisions"
	holdsPath     = "/api/v1/holds"
)

// maxAnswer bounds what is read of an answer, in bytes; 5,000 queues need about 5 MiB.
const maxAnswer = 64 << 20

// connection is how the scheduler's REST interface is reached.
type connection struct {
	kubeconfig string
	overrides  clientcmd.ConfigOverrides
	server     string // URL; empty goes through the API server
	service    string // NAMESPACE/NAME:PORT
	authority  string // file with the certificates that may have signed server's
	serverName string // what server's certificate is for; empty is the host of its URL
	insecure   bool   // server's certificate is not verified
	timeout    time.Duration

	// standby is true if a standby gave the last answer.
	standby bool
}

func (c *connection) addFlags(f *pflag.FlagSet) {
	f.StringVar(&c.kubeconfig, "kubeconfig", "", "path of the kubeconfig file")
	f.StringVar(&c.overrides.CurrentContext, "context", "", "context of the kubeconfig to use")
	f.StringVar(&c.overrides.Context.Cluster, "cluster", "", "cluster of the kubeconfig to use")
	f.StringVar(&c.overrides.Context.AuthInfo, "user", "", "user of the kubeconfig to use")
	f.StringVar(&c.overrides.AuthInfo.Impersonate, "as", "", "user name to impersonate")
	f.StringArrayVar(&c.overrides.AuthInfo.ImpersonateGroups, "as-group", nil, "group to impersonate; repeatable")
	f.StringVar(&c.server, "server", "",
		"URL of the scheduler's REST interface, such as http://127.0.0.1:9080; without it the API server is asked for --service")
	f.StringVar(&c.service, "service", "yunikorn/yunikorn-service:9080",
		"NAMESPACE/NAME:PORT of the service before the scheduler; NAMESPACE/https:NAME:PORT where it serves HTTPS")
	f.StringVar(&c.overrides.AuthInfo.Token, "token", "", "bearer token to send instead of what the kubeconfig has")
	f.StringVar(&c.authority, "certificate-authority", "", "file with the certificate authority of an https --server; without it those of this machine")
	f.StringVar(&c.serverName, "tls-server-name", "", "name that the certificate of an https --server is for, where the URL has another, as with kubectl port-forward")
	f.BoolVar(&c.insecure, "insecure-skip-tls-verify", false, "do not verify the certificate of an https --server, such as one that the scheduler signed itself; for kubectl port-forward, which leads to the right pod")
	f.DurationVar(&c.timeout, "request-timeout", 30*time.Second, "how long to wait for an answer; 0 for no limit")
}

// read reads the answer to a query at a path.
func (c *connection) read(ctx context.Context, path string, query url.Values, into any) error {
	body, err := c.request(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("the answer at %s is not what was expected: %w: is that the scheduler, and of the same version?", path, err)
	}
	return nil
}

// request returns the body of the answer to a request at a path.
func (c *connection) request(
	ctx context.Context, method, path string, query url.Values, sent []byte,
) ([]byte, error) {
	client, target, err := c.target()
	if err != nil {
		return nil, err
	}
	target = target.JoinPath(path)
	target.RawQuery = query.Encode()
	a, err := c.ask(ctx, client, method, target.String(), sent)
	return c.bodyOf(method, a, err)
}

// reply is an answer.
type reply struct {
	status  int
	body    []byte
	standby bool // the answer of a standby
}

// mostAsked is how often a request is sent, at most, until the leader answers. The API
// server picks a replica at random each time: with three replicas, all 20 tries reach a
// standby once in 3,000 commands.
const mostAsked = 20

// ask returns the answer of the leader, where that can be had.
func (c *connection) ask(ctx context.Context, client *http.Client, method, at string, sent []byte) (reply, error) {
	for asked := 1; ; asked++ {
		a, err := c.fetch(ctx, client, method, at, sent)
		if err != nil || !a.standby || c.server != "" || asked == mostAsked {
			c.standby = a.standby
			return a, err
		}
	}
}

// caution says so if a standby answered.
func (c *connection) caution(w io.Writer) {
	if c.standby {
		fmt.Fprintln(w, "note: a standby replica answered; only the leader knows what was decided. The scheduler's lease names the leader")
	}
}

// bodyOf returns the body of an answer to a method, or what to do about one that is none.
func (c *connection) bodyOf(method string, a reply, err error) ([]byte, error) {
	advice := distrusted(err)
	switch {
	case err != nil && c.server != "" && advice != "":
		return nil, fmt.Errorf("%w: %s", err, advice)
	case err != nil && c.server != "":
		return nil, fmt.Errorf("%w: is the scheduler running, and is its argument restAddress reachable from here? "+
			"From outside of the cluster use kubectl port-forward, or leave --server out", err)
	case err != nil:
		return nil, err
	case a.status == http.StatusNotFound && problemOf(a.body).Message == documents.PodNotFound:
		return nil, &missingError{message(a.body)}
	case method == http.MethodPost && a.status == http.StatusBadRequest && message(a.body) != "":
		return nil, errors.New(message(a.body)) // about what was sent
	case a.status != http.StatusOK:
		return nil, c.refused(method, a.status, a.body)
	}
	return a.body, nil
}

// missingError is the scheduler's own word that it knows no such pod.
type missingError struct{ told string }

func (e *missingError) Error() string { return e.told }

// namespace is that of the kubeconfig's context; default where there is none.
func (c *connection) namespace() string {
	namespace, _, err := c.loading().Namespace()
	if err != nil || namespace == "" {
		return "default"
	}
	return namespace
}

// fetch asks once.
func (c *connection) fetch(ctx context.Context, client *http.Client, method, at string, sent []byte) (reply, error) {
	request, err := http.NewRequestWithContext(ctx, method, at, bytes.NewReader(sent))
	if err != nil {
		return reply{}, &usageError{err}
	}
	request.Header.Set(documents.ClientHeader, "kubectl-paddock")
	response, err := client.Do(request)
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return reply{}, fmt.Errorf("no answer within %v (--request-timeout): %w", c.timeout, err)
	} else if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return reply{}, fmt.Errorf("the answer of %s broke off: %w", at, err)
	case len(body) > maxAnswer:
		return reply{}, fmt.Errorf("the answer of %s is larger than %d bytes: is that the scheduler?", at, maxAnswer)
	}
	return reply{response.StatusCode, body, response.Header.Get(documents.RoleHeader) == documents.RoleStandby}, nil
}

// target returns a client and the URL below which the REST interface is.
func (c *connection) target() (*http.Client, *url.URL, error) {
	if c.server != "" {
		u, err := url.Parse(c.server)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, nil, usagef("--server %q is no URL such as http://127.0.0.1:9080", c.server)
		}
		client, err := c.direct(u)
		return client, u, err
	}
	namespace, name, err := splitService(c.service)
	if err != nil {
		return nil, nil, err
	}
	client, base, err := c.apiServer()
	if err != nil {
		return nil, nil, fmt.Errorf("%w, or give the scheduler's address by --server", err)
	}
	return client, base.JoinPath("api/v1/namespaces", namespace, "services", name, "proxy"), nil
}

// apiServer returns a client for the API server, and its URL.
func (c *connection) apiServer() (*http.Client, *url.URL, error) {
	config, err := c.loading().ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		err = errors.New("there is no kubeconfig")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("no cluster to ask: %w; set KUBECONFIG, --kubeconfig or --context", err)
	}
	config.Timeout = c.timeout
	client, err := clientrest.HTTPClientFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("kubeconfig: %w", err)
	}
	base, _, err := clientrest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return client, base, nil
}

// loading reads what the kubeconfig says of the API server and of the user.
func (c *connection) loading() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &c.overrides)
}

// splitService returns the parts of NAMESPACE/NAME:PORT; the name keeps its port.
func splitService(s string) (namespace, name string, err error) {
	namespace, name, found := strings.Cut(s, "/")
	host, port, _ := strings.Cut(name, ":")
	if h, p, three := strings.Cut(port, ":"); three && host == "https" {
		host, port = h, p
	}
	if !found || namespace == "" || host == "" || port == "" || strings.ContainsAny(name, "/?#%") || strings.Contains(port, ":") {
		return "", "", usagef("--service %q is not NAMESPACE/NAME:PORT, such as yunikorn/yunikorn-service:9080", s)
	}
	return namespace, name, nil
}

// problemOf returns what the body of an error says, of the API server or of the
// scheduler; empty where it is neither.
func problemOf(body []byte) documents.Problem {
	var p documents.Problem
	if json.Unmarshal(body, &p) != nil {
		return documents.Problem{}
	}
	return p
}

func message(body []byte) string {
	p := problemOf(body)
	return cmp.Or(p.Description, p.Message)
}
