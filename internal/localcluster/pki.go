package localcluster

import (
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"path/filepath"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/pkiutil"
)

// keys are elliptic, because RSA keys take long to make.
const keys = kubeadm.EncryptionAlgorithmECDSAP256

// pki is the authority of one cluster. The files that the components read are in dir.
type pki struct {
	dir string
	ca  *authority
}

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// newPKI makes the authorities, the certificates of the API server and of its front proxy, and
// the service account key, and writes them into dir.
func newPKI(dir string) (*pki, error) {
	ca, err := newAuthority(dir, "ca")
	if err != nil {
		return nil, err
	}
	front, err := newAuthority(dir, "front-proxy-ca")
	if err != nil {
		return nil, err
	}
	service, err := pkiutil.NewPrivateKey(keys)
	if err != nil {
		return nil, fmt.Errorf("make the service account key: %w", err)
	}
	server := certutil.Config{
		CommonName: "kube-apiserver", Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		AltNames: certutil.AltNames{
			IPs:      []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)},
			DNSNames: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		},
	}
	return &pki{dir, ca}, errors.Join(
		ca.write(dir, "apiserver", server), front.write(dir, "front-proxy", clientOf("front-proxy-client")),
		pkiutil.WriteKey(dir, "sa", service), pkiutil.WritePublicKey(dir, "sa", service.Public()))
}

func (p *pki) file(name string) string { return filepath.Join(p.dir, name) }

func newAuthority(dir, name string) (*authority, error) {
	certificate, key, err := pkiutil.NewCertificateAuthority(&pkiutil.CertConfig{Config: certutil.Config{CommonName: "local-cluster-" + name}, EncryptionAlgorithm: keys})
	if err == nil {
		err = pkiutil.WriteCertAndKey(dir, name, certificate, key)
	}
	if err != nil {
		return nil, fmt.Errorf("make authority %s: %w", name, err)
	}
	return &authority{certificate, key}, nil
}

// write makes a certificate, and writes it and its key.
func (a *authority) write(dir, name string, c certutil.Config) error {
	certificate, key, err := a.sign(c)
	if err != nil {
		return err
	}
	return pkiutil.WriteCertAndKey(dir, name, certificate, key)
}

// client makes a certificate for the user with this name in these groups.
func (a *authority) client(user string, groups ...string) (*clientcmdapi.AuthInfo, error) {
	certificate, key, err := a.sign(clientOf(user, groups...))
	if err != nil {
		return nil, err
	}
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	return &clientcmdapi.AuthInfo{ClientCertificateData: pkiutil.EncodeCertPEM(certificate), ClientKeyData: private}, err
}

func clientOf(user string, groups ...string) certutil.Config {
	return certutil.Config{CommonName: user, Organization: groups, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
}

func (a *authority) sign(c certutil.Config) (*x509.Certificate, crypto.Signer, error) {
	certificate, key, err := pkiutil.NewCertAndKey(a.certificate, a.key, &pkiutil.CertConfig{Config: c, EncryptionAlgorithm: keys})
	if err != nil {
		return nil, nil, fmt.Errorf("sign certificate of %s: %w", c.CommonName, err)
	}
	return certificate, key, nil
}
