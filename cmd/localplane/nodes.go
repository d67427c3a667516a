package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/version"

	"github.com/paddock-scheduler/paddock/internal/nodeagent"
)

// nodesFlags are the flags of "localplane nodes".
type nodesFlags struct {
	kubeconfig string
	listen     string
}

func newNodesCommand() *cobra.Command {
	var f nodesFlags
	c := &cobra.Command{
		Use:   "nodes",
		Short: "simulate every node labelled " + nodeagent.LabelNode + "=" + nodeagent.LabelNodeValue,
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return f.run(ctx)
		},
		SilenceUsage: true,
	}
	c.SetContext(context.Background())
	c.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of an administrator (required)")
	c.Flags().StringVar(&f.listen, "listen", "127.0.0.1:0", "address of /readyz and /stats")
	return c
}

func (f nodesFlags) run(ctx context.Context) error {
	if f.kubeconfig == "" {
		return errors.New("--kubeconfig is required")
	}
	config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	config.QPS = -1 // the number of workers is the limit
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.UserAgent = "localplane-nodes"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	agent := nodeagent.New(client, version.Get().GitVersion)
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	server := &http.Server{Handler: agent.Handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		// The only error is that the server was closed below.
		_ = server.Serve(listener)
	}()
	defer server.Close()
	return agent.Run(ctx)
}
