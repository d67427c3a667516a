package main

import (
	"context"
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

func newNodesCommand() *cobra.Command {
	var kubeconfig, listen string
	c := &cobra.Command{
		Use:   "nodes",
		Short: "simulate every node labelled " + nodeagent.LabelNode + "=" + nodeagent.LabelNodeValue,
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return runNodes(ctx, kubeconfig, listen)
		},
		SilenceUsage: true,
	}
	c.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig of an administrator (required)")
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "address of /readyz and /stats")
	_ = c.MarkFlagRequired("kubeconfig") // there is such a flag
	return c
}

func runNodes(ctx context.Context, kubeconfig, listen string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
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
	listener, err := net.Listen("tcp", listen)
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
