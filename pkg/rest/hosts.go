package rest

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// HostNames returns the names under which clients may ask. A name without a dot is that of
// a Service in the namespace.
func HostNames(names []string, namespace string) []string {
	var all []string
	for _, name := range names {
		all = append(all, name)
		if !strings.Contains(name, ".") {
			service := name + "." + namespace
			all = append(all, service, service+".svc", service+".svc.cluster.local")
		}
	}
	return all
}

// hosts are the names under which clients may ask, beside IP addresses and the names of
// this machine. A web page whose name was made to lead here (DNS rebinding) is of the
// same origin for the browser and could read everything, but its requests have its own
// name as Host.
type hosts map[string]bool

func newHosts(names []string) hosts {
	h := hosts{}
	for _, name := range names {
		h[strings.ToLower(name)] = true
	}
	return h
}

// allow tells whether requests may have the value as Host. It is empty only in HTTP/1.0,
// which no browser sends.
func (h hosts) allow(value string) bool {
	host := value
	if name, _, err := net.SplitHostPort(value); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	return host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost") || h[host]
}

// wrap answers only requests for names that are allowed.
func (h hosts) wrap(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.allow(r.Host) || r.Header.Get(documents.ClientHeader) != "" {
			handler.ServeHTTP(w, r)
			return
		}
		documents.Refuse(w, http.StatusMisdirectedRequest, "Unknown host",
			"this interface is not known as "+r.Host+": ask by IP address or by the name of the Service, or add the name to argument restHosts of QueueSort (rest.hosts of the chart)")
	})
}
