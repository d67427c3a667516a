package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/paddock-scheduler/paddock/internal/localcluster/demo"
)

// commandPatience is how long a command may take.
const commandPatience = 15 * time.Second

// command is something to do with a running cluster.
type command struct {
	// arguments are named for people; all are required.
	arguments []string
	do        func(ctx context.Context, client kubernetes.Interface, out io.Writer, args []string) error
}

var commands = map[string]command{
	"pods":  {nil, podsCommand},
	"scale": {[]string{"NAMESPACE/DEPLOYMENT", "REPLICAS"}, scaleCommand},
}

// checkCommand looks whether the words are a command, without doing it.
func checkCommand(words []string) error {
	c, known := commands[words[0]]
	if !known {
		return fmt.Errorf("unexpected argument %q: the commands are pods and scale, all else are flags, see --help", words[0])
	}
	if len(words)-1 != len(c.arguments) {
		return fmt.Errorf("%q has %d arguments, want: %s", words[0], len(words)-1, strings.Join(append(words[:1:1], c.arguments...), " "))
	}
	return nil
}

// runCommand does what the words say with the cluster that runs in dir.
func runCommand(ctx context.Context, dir string, words []string, out io.Writer) error {
	kubeconfig, err := readRecord(dir)
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("kubeconfig of the cluster: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, commandPatience)
	defer cancel()
	err = commands[words[0]].do(ctx, client, out, words[1:]) // checked by checkCommand
	if utilnet.IsConnectionRefused(err) || utilnet.IsTimeout(err) {
		return fmt.Errorf("%w\n(the cluster of %s; does it still run?)", err, dir)
	}
	return err
}

func podsCommand(ctx context.Context, client kubernetes.Interface, out io.Writer, _ []string) error {
	pods, err := demo.SamplePods(ctx, client)
	if err != nil {
		return err
	}
	return demo.PrintPods(out, pods)
}

func scaleCommand(ctx context.Context, client kubernetes.Interface, out io.Writer, args []string) error {
	namespace, name, found := strings.Cut(args[0], "/")
	if !found || namespace == "" || name == "" {
		return fmt.Errorf("%q is no NAMESPACE/DEPLOYMENT", args[0])
	}
	replicas, err := strconv.ParseInt(args[1], 10, 32)
	if err != nil || replicas < 0 {
		return fmt.Errorf("replicas is %q, want a number from 0 on", args[1])
	}
	before, err := demo.Scale(ctx, client, namespace, name, int32(replicas))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s/%s has %d replicas now, %d before\n", namespace, name, replicas, before)
	return nil
}
