package main

import (
	"encoding/json"
	"fmt"
	"os"

	componentbaseconfig "k8s.io/component-base/config/v1alpha1"
	"k8s.io/klog/v2"
	schedconfigv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"sigs.k8s.io/yaml"

	"github.com/paddock-scheduler/paddock/apis/config/scheme"
	manifests "github.com/paddock-scheduler/paddock/manifests/config"
)

// useBuiltin makes options without --config use the built-in configuration. The
// returned function gives back what it took, after app.Setup.
//
// app.Setup overwrites Options.ComponentConfig, so the one way in is the path of
// a file. The file is the end of a pipe: the root file system of a container is
// read-only.
func useBuiltin(opts *options.Options) (done func(), err error) {
	if opts.ConfigFile != "" {
		return func() {}, nil
	}
	document, err := builtinDocument(opts)
	if err != nil {
		return nil, fmt.Errorf("built-in configuration: %w", err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("built-in configuration: %w", err)
	}
	go func() {
		// An error here is an incomplete document there, which does not decode.
		if _, err := write.Write(document); err != nil {
			klog.Background().Error(err, "Cannot pass on the built-in configuration, so the scheduler will not start; give --config")
		}
		_ = write.Close()
	}()
	opts.ConfigFile = fmt.Sprintf("/dev/fd/%d", read.Fd())
	return func() {
		opts.ConfigFile = ""
		_ = read.Close()
	}, nil
}

// builtinDocument returns the built-in configuration with the flags applied that
// upstream honours only without --config: --kubeconfig, --kube-api-qps,
// --profiling and their like. The others, such as --leader-elect, are applied
// later, as with any file.
func builtinDocument(opts *options.Options) ([]byte, error) {
	decoded, _, err := scheme.Codecs.UniversalDecoder().Decode(manifests.SecondScheduler, nil, nil)
	if err != nil {
		return nil, err
	}
	effective, ok := decoded.(*schedconfig.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("decoded a %T", decoded)
	}
	opts.ComponentConfig = effective
	opts.ApplyDeprecated()

	// Into the document as it is written, because defaulting it twice logs a
	// warning for each plugin.
	var document schedconfigv1.KubeSchedulerConfiguration
	if err := yaml.UnmarshalStrict(manifests.SecondScheduler, &document); err != nil {
		return nil, err
	}
	document.ClientConnection = componentbaseconfig.ClientConnectionConfiguration(effective.ClientConnection)
	document.EnableProfiling = &effective.EnableProfiling
	document.EnableContentionProfiling = &effective.EnableContentionProfiling
	return json.Marshal(document)
}
