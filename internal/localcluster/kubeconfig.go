package localcluster

import (
	"fmt"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/pkiutil"
)

// The users with a kubeconfig from the start; see KubeconfigPath.
const (
	// UserAdmin may do everything.
	UserAdmin = "admin"
	// UserScheduler is system:kube-scheduler, with the rights of manifests/rbac/second-scheduler.yaml.
	UserScheduler = "scheduler"

	userControllerManager = "controller-manager"
)

// identities are user name and groups of the certificates behind the kubeconfigs.
var identities = map[string]struct {
	name   string
	groups []string
}{
	UserAdmin:             {"admin", []string{"system:masters"}},
	UserScheduler:         {"system:kube-scheduler", nil},
	userControllerManager: {"system:kube-controller-manager", nil},
}

// KubeconfigPath returns the path of the kubeconfig of a user, UserAdmin or UserScheduler. In a
// cluster that is not ours there is only the one.
func (c *Cluster) KubeconfigPath(user string) string {
	if c.options.Kubeconfig != "" {
		return c.options.Kubeconfig
	}
	return filepath.Join(c.options.Dir, user+".kubeconfig")
}

// writeKubeconfigs makes certificates for the users and writes their kubeconfigs.
func (c *Cluster) writeKubeconfigs() error {
	for user, id := range identities {
		auth, err := c.pki.ca.client(id.name, id.groups...)
		if err != nil {
			return err
		}
		if err := c.writeKubeconfig(c.KubeconfigPath(user), auth); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) writeKubeconfig(path string, auth *clientcmdapi.AuthInfo) error {
	k := clientcmdapi.NewConfig()
	k.Clusters["local"] = &clientcmdapi.Cluster{Server: c.apiURL(), CertificateAuthorityData: pkiutil.EncodeCertPEM(c.pki.ca.certificate)}
	k.AuthInfos["local"] = auth
	k.Contexts["local"] = &clientcmdapi.Context{Cluster: "local", AuthInfo: "local"}
	k.CurrentContext = "local"
	if err := clientcmd.WriteToFile(*k, path); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

// CertificateKubeconfig makes a certificate for a user, which may have another one
// already, and its groups, and returns the path of a kubeconfig with it.
func (c *Cluster) CertificateKubeconfig(user string, groups ...string) (string, error) {
	auth, err := c.pki.ca.client(user, groups...)
	if err != nil {
		return "", err
	}
	path := c.KubeconfigPath("certificate-" + strings.Join(append([]string{strings.ReplaceAll(user, ":", "-")}, groups...), "-"))
	return path, c.writeKubeconfig(path, auth)
}
