package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/pkg/eventlog"
	"github.com/paddock-scheduler/paddock/pkg/rest"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// serveREST starts the REST interface, and what only it needs; nothing if it has no address.
func serveREST(
	ctx context.Context, args *config.QueueSortArgs, h fwk.Handle, s *store.Store, options rest.Options, logger klog.Logger,
) error {
	if *args.RESTAddress == "" {
		return nil
	}
	var err error
	options.Hosts = restHosts(args)
	switch {
	case args.RESTTLSCertFile != "":
		options.TLS, err = servingTLS(ctx, args.RESTTLSCertFile, args.RESTTLSKeyFile)
	case args.RESTAuthorization == config.RESTAuthorizationDelegated:
		options.TLS, err = selfSignedTLS(options.Hosts)
	}
	if err != nil {
		return err
	}
	if args.RESTAuthorization == config.RESTAuthorizationDelegated {
		if h.KubeConfig() == nil {
			return errors.New("restAuthorization Delegated: there is no API server to ask")
		}
		if options.Guard, err = newGuards(h.KubeConfig(), reviewTimeout); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", *args.RESTAddress)
	if err != nil {
		return fmt.Errorf("restAddress %q: %w; give another address, or \"\" for no REST", *args.RESTAddress, err)
	}
	options.Events = eventlog.New(s.Follow(output.Facts), eventlog.Size)
	go rest.NewServer(options).Serve(ctx, listener, logger)
	return nil
}

// restService is the name of the Service that the manifests ship, which YuniKorn's clients
// look for.
const restService = "yunikorn-service"

// restHosts returns the names under which clients may ask.
func restHosts(args *config.QueueSortArgs) []string {
	names := append([]string{restService}, args.RESTHosts...)
	if host, _, err := net.SplitHostPort(*args.RESTAddress); err == nil && host != "" {
		names = append(names, host)
	}
	return rest.HostNames(names, args.EffectiveConfigNamespace(os.Getenv))
}

// selfSignedTLS makes a certificate, as kube-scheduler does for its own port, so that tokens
// are not sent in the clear. The process makes another one each time it starts.
func selfSignedTLS(names []string) (*tls.Config, error) {
	loopback := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	cert, key, err := certutil.GenerateSelfSignedCertKey(names[0], loopback, append([]string{"localhost"}, names[1:]...))
	if err != nil {
		return nil, fmt.Errorf("a certificate for REST: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("a certificate for REST: %w", err)
	}
	config := restTLS()
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// restTLS returns the settings that do not depend on the certificate, which the caller adds.
func restTLS() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
}

// nodeLabels returns a function for the labels of a node in the scheduler's informer; nil
// for an unknown node.
func nodeLabels(h fwk.Handle) func(name string) map[string]string {
	nodes := h.SharedInformerFactory().Core().V1().Nodes().Lister()
	return func(name string) map[string]string {
		node, err := nodes.Get(name)
		if err != nil {
			return nil // it was deleted meanwhile
		}
		return node.Labels
	}
}

// servingTLS reads the files, and again whenever they change, until the context ends. A
// later invalid pair is logged, and the previous one stays in force.
func servingTLS(ctx context.Context, certFile, keyFile string) (*tls.Config, error) {
	content, err := dynamiccertificates.NewDynamicServingContentFromFiles("rest", certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("restTLSCertFile %q and restTLSKeyFile %q: %w; "+
			"give a PEM certificate and its key, or leave both out for plain HTTP", certFile, keyFile, err)
	}
	served := dynamiccertificates.NewDynamicServingCertificateController(restTLS(), nil, content, nil, nil)
	content.AddListener(served)
	if err := served.RunOnce(); err != nil {
		return nil, fmt.Errorf("restTLSCertFile %q and restTLSKeyFile %q: %w", certFile, keyFile, err)
	}
	go content.Run(ctx, 1)
	go served.Run(1, ctx.Done())
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: served.GetConfigForClient}, nil
}
