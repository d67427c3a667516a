package app

import (
	"context"
	"fmt"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/kubernetes"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	clientrest "k8s.io/client-go/rest"

	"github.com/paddock-scheduler/paddock/pkg/rest"
)

const (
	// verdictKept is how long the API server's answers about a reader are cached.
	verdictKept = 10 * time.Second
	// reviewTimeout is the time-out of one answer.
	reviewTimeout = 5 * time.Second
)

// pathPrefix is put before the path of a request in the review by the API server, because
// system:discovery opens paths below /api to every account.
const pathPrefix = "/paddock"

// guards are a guard for known readers and one for all others. Each has a rate of its own,
// so tokens and paths that others invent do not use up the reviews of known readers.
type guards struct{ known, others *guard }

// Admit implements the Guard of pkg/rest.
func (g guards) Admit(r *http.Request, known bool) error {
	if known {
		return g.known.admit(r)
	}
	return g.others.admit(r)
}

func newGuards(config *clientrest.Config, timeout time.Duration) (g guards, err error) {
	if g.known, err = newGuard(config, timeout); err != nil {
		return g, err
	}
	g.others, err = newGuard(config, timeout)
	return g, err
}

// guard asks the API server for the user of a bearer token and whether that user may
// "get" the path, as the API server itself does for nonresource paths.
type guard struct {
	authenticator authenticator.Request
	authorizer    authorizer.Authorizer
}

// newGuard makes a guard with a client of its own, so that reviews do not reduce the rate
// at which the scheduler may bind pods. The timeout limits each answer of the API server.
func newGuard(config *clientrest.Config, timeout time.Duration) (*guard, error) {
	config = clientrest.AddUserAgent(clientrest.CopyConfig(config), "rest")
	config.QPS, config.Burst, config.Timeout = 20, 40, timeout
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("restAuthorization: %w", err)
	}
	backoff := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 4}
	asked := &tokens{reviews: client.AuthenticationV1().TokenReviews(), backoff: backoff, timeout: timeout}
	authn := group.NewAuthenticatedGroupAdder(bearertoken.New(certain{cache.New(asked, false, verdictKept, verdictKept)}))
	authz, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client.AuthorizationV1(), WebhookRetryBackoff: &backoff,
		AllowCacheTTL: verdictKept, DenyCacheTTL: verdictKept,
	}.New()
	if err != nil {
		return nil, fmt.Errorf("restAuthorization: %w", err)
	}
	return &guard{authenticator: authn, authorizer: authz}, nil
}

// tokens asks the API server for the user of a token. Upstream's client returns the same kind
// of error for a rejected token and for an unreachable API server. Here only a rejected token
// is rest.ErrUnknown, so that users do not look for a better token during an outage.
type tokens struct {
	reviews authenticationclient.TokenReviewInterface
	backoff wait.Backoff
	timeout time.Duration // of one review with all retries
}

// AuthenticateToken implements authenticator.Token. A rejection without a reason is not
// an error.
func (t *tokens) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	var review *authenticationv1.TokenReview
	err := webhook.WithExponentialBackoff(ctx, t.backoff, func() (err error) {
		question := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
		review, err = t.reviews.Create(ctx, question, metav1.CreateOptions{})
		return err
	}, webhook.DefaultShouldRetry)
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("TokenReview failed: %w; if rights are missing, let the scheduler's service account create tokenreviews (ClusterRole system:auth-delegator)", err)
	case !review.Status.Authenticated && review.Status.Error != "":
		return nil, false, fmt.Errorf("%w: %s", rest.ErrUnknown, review.Status.Error)
	case !review.Status.Authenticated:
		return nil, false, nil
	}
	who := review.Status.User
	extra := make(map[string][]string, len(who.Extra))
	for k, v := range who.Extra {
		extra[k] = v
	}
	return &authenticator.Response{User: &user.DefaultInfo{Name: who.Username, UID: who.UID, Groups: who.Groups, Extra: extra}}, true, nil
}

// certain turns a rejection without a reason into rest.ErrUnknown. It wraps the cache,
// which stores rejections but not errors.
type certain struct{ authenticator.Token }

// AuthenticateToken implements authenticator.Token.
func (c certain) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	who, known, err := c.Token.AuthenticateToken(ctx, token)
	if !known && err == nil {
		err = rest.ErrUnknown
	}
	return who, known, err
}

// admit reviews a request. The interface changes nothing, so every method is a get.
func (g *guard) admit(r *http.Request) error {
	who, known, err := g.authenticator.AuthenticateRequest(r)
	switch {
	case err != nil:
		return err
	case !known:
		return rest.ErrUnknown
	}
	path := pathPrefix + r.URL.Path
	verdict, _, err := g.authorizer.Authorize(r.Context(), authorizer.AttributesRecord{User: who.User, Verb: "get", Path: path})
	if verdict == authorizer.DecisionAllow {
		return nil
	}
	if err != nil {
		return fmt.Errorf("SubjectAccessReview for %s failed: %w; if rights are missing, let the scheduler's service account create subjectaccessreviews (ClusterRole system:auth-delegator)", who.User.GetName(), err)
	}
	return fmt.Errorf("%w: %s may not get the path %s; a ClusterRole with this in nonResourceURLs and the verb get allows it",
		rest.ErrForbidden, who.User.GetName(), path)
}
