package localcluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// pki is all keys and certificates of one cluster. The files it wrote lie in dir.
type pki struct {
	dir        string
	ca, front  *authority
	serviceKey *ecdsa.PrivateKey
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

// The certificates are valid for a year; no local cluster runs longer.
const validity = 365 * 24 * time.Hour

// newPKI makes the authorities, the server certificate and the service account key, and writes the files that
// the components read into dir.
func newPKI(dir string) (*pki, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make certificates: %w", err)
	}
	p := &pki{dir: dir}
	var err error
	if p.ca, err = newAuthority("local-cluster"); err != nil {
		return nil, err
	}
	if p.front, err = newAuthority("local-cluster-front-proxy"); err != nil {
		return nil, err
	}
	server, err := p.ca.server()
	if err != nil {
		return nil, err
	}
	proxy, err := p.front.client("front-proxy-client")
	if err != nil {
		return nil, err
	}
	if p.serviceKey, err = newKey(); err != nil {
		return nil, err
	}
	caKey, err := encodeKey(p.ca.key)
	if err != nil {
		return nil, err
	}
	serviceKey, err := encodeKey(p.serviceKey)
	if err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(&p.serviceKey.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("encode service account key: %w", err)
	}
	for name, data := range map[string][]byte{
		"ca.crt": p.ca.pem, "ca.key": caKey, "front-proxy-ca.crt": p.front.pem,
		"apiserver.crt": server.certificate, "apiserver.key": server.key,
		"front-proxy.crt": proxy.certificate, "front-proxy.key": proxy.key,
		"sa.key": serviceKey, "sa.pub": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
	} {
		if err := os.WriteFile(p.file(name), data, 0o600); err != nil {
			return nil, fmt.Errorf("write certificate: %w", err)
		}
	}
	return p, nil
}

func (p *pki) file(name string) string { return filepath.Join(p.dir, name) }

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	return key, nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func newAuthority(name string) (*authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template, err := newTemplate(pkix.Name{CommonName: name})
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make authority %s: %w", name, err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make authority %s: %w", name, err)
	}
	return &authority{certificate, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, nil
}

func newTemplate(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("make certificate: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial, Subject: subject, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(validity),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment, BasicConstraintsValid: true,
	}, nil
}

// client makes a certificate for the user with this name in these groups.
func (a *authority) client(user string, groups ...string) (keyPair, error) {
	template, err := newTemplate(pkix.Name{CommonName: user, Organization: groups})
	if err != nil {
		return keyPair{}, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(template)
}

// server makes the certificate of the API server.
func (a *authority) server() (keyPair, error) {
	template, err := newTemplate(pkix.Name{CommonName: "kube-apiserver"})
	if err != nil {
		return keyPair{}, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)}
	template.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	return a.sign(template)
}

func (a *authority) sign(template *x509.Certificate) (keyPair, error) {
	key, err := newKey()
	if err != nil {
		return keyPair{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return keyPair{}, fmt.Errorf("sign certificate of %s: %w", template.Subject.CommonName, err)
	}
	encoded, err := encodeKey(key)
	if err != nil {
		return keyPair{}, err
	}
	return keyPair{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), encoded}, nil
}
