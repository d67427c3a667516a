package process

import (
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"

	"github.com/paddock-scheduler/paddock/pkg/rest"
)

const (
	// verdictKept is how long the API server's answers about a reader count.
	verdictKept = 10 * time.Second
	// reviewTimeout is how long it may take for one.
	reviewTimeout = 5 * time.Second
)

// pathPrefix is put before the path of a request when the API server is asked about
// it: paths below /api are open to every account there is, by system:discovery.
const pathPrefix = "/paddock"

// guard asks the API server who a reader is, by the bearer token, and whether the
// reader may "get" the path, as the API server itself does for paths that are no
// resources.
type guard struct {
	authenticator authenticator.Request
	authorizer    authorizer.Authorizer
}

// newGuard makes a guard with a client of its own: questions about readers must not
// take from the rate at which the scheduler may bind pods.
func newGuard(config *clientrest.Config) (rest.Guard, error) {
	config = clientrest.AddUserAgent(clientrest.CopyConfig(config), "rest")
	config.QPS, config.Burst = 20, 40
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("restAuthorization: %w", err)
	}
	backoff := &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 4}
	authn, _, err := authenticatorfactory.DelegatingAuthenticatorConfig{
		Anonymous:               &apiserver.AnonymousAuthConfig{},
		TokenAccessReviewClient: client.AuthenticationV1(), TokenAccessReviewTimeout: reviewTimeout,
		WebhookRetryBackoff: backoff, CacheTTL: verdictKept,
	}.New()
	if err != nil {
		return nil, fmt.Errorf("restAuthorization: %w", err)
	}
	authz, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client.AuthorizationV1(), WebhookRetryBackoff: backoff,
		AllowCacheTTL: verdictKept, DenyCacheTTL: verdictKept,
	}.New()
	if err != nil {
		return nil, fmt.Errorf("restAuthorization: %w", err)
	}
	return &guard{authenticator: authn, authorizer: authz}, nil
}

// Admit serves pkg/rest. Nothing there changes anything, so every method is a get.
func (g *guard) Admit(r *http.Request) error {
	who, known, err := g.authenticator.AuthenticateRequest(r)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", rest.ErrUnknown, err)
	case !known:
		return rest.ErrUnknown
	}
	path := pathPrefix + r.URL.Path
	verdict, _, err := g.authorizer.Authorize(r.Context(), authorizer.AttributesRecord{User: who.User, Verb: "get", Path: path})
	if verdict == authorizer.DecisionAllow {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the API server was asked what %s may do: %w", who.User.GetName(), err)
	}
	return fmt.Errorf("%w: %s may not get the path %s; a ClusterRole with this in nonResourceURLs and the verb get allows it",
		rest.ErrForbidden, who.User.GetName(), path)
}
