package localcluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// pki is all keys and certificates of one cluster. The files it wrote lie in dir.
type pki struct {
	dir       string
	ca, front *authority
}

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

// keyPair is a certificate with its key, both PEM.
type keyPair struct {
	certificate, key []byte
}

// validity is that of certificates; no local cluster runs longer.
const validity = 365 * 24 * time.Hour

// newPKI makes the authorities, the server certificate and the service account key, and writes the files that
// the components read into dir.
func newPKI(dir string) (*pki, error) {
	p := &pki{dir: dir}
	if err := p.write(); err != nil {
		return nil, fmt.Errorf("make certificates: %w", err)
	}
	return p, nil
}

func (p *pki) write() error {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return err
	}
	var err error
	if p.ca, err = newAuthority("local-cluster"); err != nil {
		return err
	}
	if p.front, err = newAuthority("local-cluster-front-proxy"); err != nil {
		return err
	}
	server, err := p.ca.server()
	if err != nil {
		return err
	}
	proxy, err := p.front.client("front-proxy-client")
	if err != nil {
		return err
	}
	caKey, err := keyutil.MarshalPrivateKeyToPEM(p.ca.key)
	if err != nil {
		return err
	}
	service, err := newKey()
	if err != nil {
		return err
	}
	serviceKey, err := keyutil.MarshalPrivateKeyToPEM(service)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&service.PublicKey)
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		"ca.crt": p.ca.pem, "ca.key": caKey, "front-proxy-ca.crt": p.front.pem,
		"apiserver.crt": server.certificate, "apiserver.key": server.key,
		"front-proxy.crt": proxy.certificate, "front-proxy.key": proxy.key,
		"sa.key": serviceKey, "sa.pub": pem.EncodeToMemory(&pem.Block{Type: keyutil.PublicKeyBlockType, Bytes: public}),
	} {
		if err := os.WriteFile(p.file(name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (p *pki) file(name string) string { return filepath.Join(p.dir, name) }

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func newAuthority(name string) (*authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	certificate, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: name, NotBefore: time.Now().Add(-time.Hour)}, key)
	if err != nil {
		return nil, err
	}
	return &authority{certificate, key, encoded(certificate.Raw)}, nil
}

func encoded(certificate []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: certificate})
}

// client makes a certificate for the user with this name in these groups.
func (a *authority) client(user string, groups ...string) (keyPair, error) {
	return a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: user, Organization: groups}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// server makes the certificate of the API server.
func (a *authority) server() (keyPair, error) {
	return a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "kube-apiserver"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
	})
}

func (a *authority) sign(template *x509.Certificate) (keyPair, error) {
	key, err := newKey()
	if err != nil {
		return keyPair{}, err
	}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(validity)
	template.KeyUsage, template.BasicConstraintsValid = x509.KeyUsageDigitalSignature|x509.KeyUsageKeyEncipherment, true
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return keyPair{}, fmt.Errorf("sign certificate of %s: %w", template.Subject.CommonName, err)
	}
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	return keyPair{encoded(der), private}, err
}
