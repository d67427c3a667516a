package main

import (
	"fmt"
	"net"
	"net/url"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
)

// usualREST is where the REST API is unless the port is in use.
const usualREST = "127.0.0.1:9080"

// chooseREST returns the host:port that the scheduler's REST API is to have. given is an
// address with scheme, which is refused when it is in use; with port 0, any free port is
// taken. Empty means the usual address, or a free one when that is in use.
func chooseREST(given string) (string, error) {
	if given == "" {
		if free(usualREST) == nil {
			return usualREST, nil
		}
		return localcluster.FreeAddress()
	}
	u, err := url.Parse(given)
	if err != nil || u.Scheme != "http" || u.Port() == "" || (u.Path != "" && u.Path != "/") {
		return "", fmt.Errorf("rest (REST) is %q, want an address such as http://%s", given, usualREST)
	}
	if u.Port() == "0" {
		return localcluster.FreeAddress()
	}
	if err := free(u.Host); err != nil {
		return "", fmt.Errorf("the scheduler's REST address %s is not free: end what uses it, or let rest (REST) name another: %w", u.Host, err)
	}
	return u.Host, nil
}

// free says why an address cannot be listened on.
func free(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return listener.Close()
}
