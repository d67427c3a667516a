package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// direct returns a client for --server. Over HTTPS it sends the credentials of the
// kubeconfig or --token, because schedulers may require them. Over plain HTTP it never
// does: a listener on the way could use them.
func (c *connection) direct(server *url.URL) (*http.Client, error) {
	if server.Scheme != "https" {
		switch {
		case c.overrides.AuthInfo.Token != "":
			return nil, usagef("--token is sent over HTTPS only, and --server is %s", c.server)
		case c.authority != "" || c.serverName != "" || c.insecure:
			return nil, usagef("--certificate-authority, --tls-server-name and --insecure-skip-tls-verify are about HTTPS, and --server is %s", c.server)
		}
		return &http.Client{Timeout: c.timeout}, nil
	}
	if c.insecure && (c.authority != "" || c.serverName != "") {
		return nil, usagef("--insecure-skip-tls-verify verifies nothing: leave it out, or --certificate-authority and --tls-server-name")
	}
	config, err := c.credentials()
	if err != nil {
		return nil, err
	}
	if config.Impersonate.UserName != "" {
		return nil, usagef("--server cannot be asked as %s: the scheduler knows no impersonation. Give --token, or leave --server out", config.Impersonate.UserName)
	}
	client, err := clientrest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig, or --certificate-authority: %w", err)
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // the credentials are for this server
	return client, nil
}

// credentials are those of the kubeconfig's user, or --token, or none where there is
// no kubeconfig, for --server, of which the kubeconfig knows nothing.
func (c *connection) credentials() (*clientrest.Config, error) {
	user := &clientrest.Config{BearerToken: c.overrides.AuthInfo.Token}
	if user.BearerToken == "" {
		found, err := c.loading().ClientConfig()
		switch {
		case err == nil:
			user = found
		case !clientcmd.IsEmptyConfig(err):
			return nil, fmt.Errorf("kubeconfig: %w", err)
		}
	}
	config := &clientrest.Config{
		Host: c.server, Timeout: c.timeout, UserAgent: user.UserAgent, Impersonate: user.Impersonate,
		BearerToken: user.BearerToken, BearerTokenFile: user.BearerTokenFile, ExecProvider: user.ExecProvider,
		AuthProvider: user.AuthProvider, AuthConfigPersister: user.AuthConfigPersister,
	}
	config.TLSClientConfig = clientrest.TLSClientConfig{
		CAFile: c.authority, ServerName: c.serverName, Insecure: c.insecure,
		CertFile: user.CertFile, CertData: user.CertData, KeyFile: user.KeyFile, KeyData: user.KeyData,
	}
	return config, nil
}

// distrusted tells whether an error is about the server's certificate, and what to do.
func distrusted(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "give the certificate that signed it by --certificate-authority; through kubectl port-forward --insecure-skip-tls-verify will do"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "give a name that it is for by --tls-server-name"
	}
	return ""
}
