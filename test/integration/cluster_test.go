package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/internal/nodeagent"
)

// removeNodes deletes Node objects; the agent forgets them, the controllers remove their
// pods. Missing nodes are no error.
func removeNodes(ctx context.Context, names ...string) error {
	var errs []error
	for _, name := range names {
		if err := suite.client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("delete node %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// nodeStats returns the counters of the node agent since its start. Stats.Rejected is 0
// while the scheduler does not overcommit nodes.
func nodeStats(ctx context.Context) (stats nodeagent.Stats, err error) {
	body, err := fetch(ctx, http.DefaultClient, suite.cluster.Process(localcluster.Nodes).URL()+"/stats")
	if err == nil {
		err = json.Unmarshal(body, &stats)
	}
	if err != nil {
		return stats, fmt.Errorf("read node stats: %w", err)
	}
	return stats, nil
}

// serviceAccountKubeconfig requests a token of a service account, valid for eight hours,
// and returns the path of a kubeconfig with it.
func serviceAccountKubeconfig(ctx context.Context, namespace, name string) (string, error) {
	seconds := int64(8 * 3600)
	token, err := suite.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("token of service account %s/%s: %w", namespace, name, err)
	}
	kubeconfig, err := clientcmd.LoadFromFile(suite.cluster.KubeconfigPath(localcluster.UserAdmin))
	if err != nil {
		return "", fmt.Errorf("read the admin kubeconfig: %w", err)
	}
	for user := range kubeconfig.AuthInfos {
		kubeconfig.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	path := suite.cluster.KubeconfigPath("serviceaccount-" + namespace + "-" + name)
	return path, clientcmd.WriteToFile(*kubeconfig, path)
}
