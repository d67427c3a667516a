package main

import (
	"errors"
	"fmt"
	"net/http"
)

// proxyVerbs are the verbs on services/proxy that the API server wants for a method.
var proxyVerbs = map[string]string{http.MethodGet: "get", http.MethodPost: "create"}

// refused says what to do with an answer to a method that is not 200.
func (c *connection) refused(method string, status int, body []byte) error {
	told := fmt.Sprintf("answer %d %s", status, http.StatusText(status))
	if m := message(body); m != "" {
		told += ": " + m
	}
	p := problemOf(body)
	own := p.StatusCode != 0 && p.Message != "" // not of an API server before the scheduler
	switch {
	case c.server != "":
		return c.refusedDirectly(status, told, own)
	case own && status == http.StatusUnauthorized:
		return fmt.Errorf("%s: the scheduler answers only users that it knows, and the API server does not pass your credentials on to it. "+
			"Use kubectl port-forward, and give --server https://127.0.0.1:PORT with --insecure-skip-tls-verify, or with --certificate-authority and --tls-server-name", told)
	case own:
		return errors.New(told)
	}
	switch status {
	case http.StatusUnauthorized:
		return fmt.Errorf("%s: log in to the cluster again", told)
	case http.StatusForbidden:
		return fmt.Errorf("%s: you need the verb %s on services/proxy there; ask for it, or use kubectl port-forward and --server", told, proxyVerbs[method])
	case http.StatusBadRequest:
		return fmt.Errorf("%s: does the scheduler serve HTTPS (restTLSCertFile, or restAuthorization Delegated)? Then name the service by --service NAMESPACE/https:NAME:PORT", told)
	case http.StatusNotFound:
		return fmt.Errorf("%s: is there a service %s? Name it by --service NAMESPACE/NAME:PORT, or use kubectl port-forward and --server", told, c.service)
	case http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout:
		return fmt.Errorf("%s: no scheduler answers behind service %s. Does the service have that port, is the scheduler running, "+
			"does its argument restAddress listen on more than 127.0.0.1, and does its NetworkPolicy let the API server through "+
			"(networkPolicy.restFrom of the chart)? Otherwise use kubectl port-forward and --server", told, c.service)
	}
	return errors.New(told)
}

// refusedDirectly says it of an answer of --server.
func (c *connection) refusedDirectly(status int, told string, own bool) error {
	switch {
	case own && status == http.StatusUnauthorized:
		return fmt.Errorf("%s: %s: the scheduler takes the bearer token of the kubeconfig's user, or --token; a client certificate says nothing to it. "+
			"Log in to the cluster again, or give --token \"$(kubectl create token SERVICEACCOUNT)\"", c.server, told)
	case own && status == http.StatusForbidden:
		return fmt.Errorf("%s: %s: ask an administrator of the cluster for that", c.server, told)
	case own:
		return fmt.Errorf("%s: %s", c.server, told)
	}
	return fmt.Errorf("%s: %s: is this the scheduler's REST interface?", c.server, told)
}
