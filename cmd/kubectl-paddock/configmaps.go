package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

// clusterDocument returns the document that the cluster's ConfigMaps hold, as
// the scheduler reads them, and a name for it. Those that are absent count as
// empty; found is false if both are.
func (c *connection) clusterDocument(ctx context.Context, namespace string) (name string, text []byte, found bool, err error) {
	name = fmt.Sprintf("ConfigMaps %s and %s in namespace %s", config.DefaultsConfigMap, config.QueuesConfigMap, namespace)
	defaults, err := c.configMap(ctx, namespace, config.DefaultsConfigMap)
	if err != nil {
		return name, nil, false, err
	}
	configs, err := c.configMap(ctx, namespace, config.QueuesConfigMap)
	if err != nil {
		return name, nil, false, err
	}
	text, _, err = config.FromConfigMaps(defaults, configs)
	return name, text, defaults.Data != nil || defaults.BinaryData != nil || configs.Data != nil || configs.BinaryData != nil, err
}

// configMap reads one ConfigMap; it is empty where there is none.
func (c *connection) configMap(ctx context.Context, namespace, name string) (config.Source, error) {
	client, base, err := c.apiServer()
	if err != nil {
		return config.Source{}, fmt.Errorf("read the cluster's configuration: %w, or name the old file", err)
	}
	status, body, err := c.fetch(ctx, client, base.JoinPath("api/v1/namespaces", namespace, "configmaps", name).String())
	switch {
	case err != nil:
		return config.Source{}, fmt.Errorf("read ConfigMap %s/%s: %w", namespace, name, err)
	case status == http.StatusNotFound:
		return config.Source{}, nil
	case status != http.StatusOK:
		return config.Source{}, fmt.Errorf("read ConfigMap %s/%s: %s: name the old file instead", namespace, name, answered(status, body))
	}
	var source config.Source
	if err := json.Unmarshal(body, &source); err != nil {
		return config.Source{}, fmt.Errorf("read ConfigMap %s/%s: %w", namespace, name, err)
	}
	return source, nil
}
