package informer

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

// ConfigHandler is told of every configuration that was read.
type ConfigHandler interface {
	// Loaded is told a valid configuration and where it came from.
	Loaded(spec *config.Spec, source string)
	// Failed is told why a configuration cannot be used. The one before, if any,
	// stays in force. About is the object to complain to; nil for a file.
	Failed(err error, source string, about *corev1.ConfigMap)
}

// ConfigMaps reads the configuration from the two ConfigMaps of a namespace and
// follows their changes. A ConfigMap that does not exist counts as empty.
type ConfigMaps struct {
	namespace string
	handler   ConfigHandler
	informers []cache.SharedIndexInformer // defaults, configs
	changed   chan struct{}
}

// NewConfigMaps makes a source that reads nothing before Run.
func NewConfigMaps(client kubernetes.Interface, namespace string, handler ConfigHandler, logger klog.Logger) (*ConfigMaps, error) {
	c := &ConfigMaps{namespace: namespace, handler: handler, changed: make(chan struct{}, 1)}
	for _, name := range []string{config.DefaultsConfigMap, config.QueuesConfigMap} {
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
			informers.WithTweakListOptions(func(o *metav1.ListOptions) {
				o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
			}))
		informer := factory.Core().V1().ConfigMaps().Informer()
		if err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
			cache.DefaultWatchErrorHandler(ctx, r, err)
			logger.Error(err, "The queue configuration cannot be read; no pod of a queue is scheduled before it can. "+
				"Let the scheduler's service account get, list and watch ConfigMaps in the namespace",
				"namespace", namespace, "configMap", name)
		}); err != nil {
			return nil, fmt.Errorf("watch ConfigMap %s/%s: %w", namespace, name, err)
		}
		if _, err := informer.AddEventHandler(handlerFor(c.touch)); err != nil {
			return nil, fmt.Errorf("watch ConfigMap %s/%s: %w", namespace, name, err)
		}
		c.informers = append(c.informers, informer)
	}
	return c, nil
}

func handlerFor(touch func()) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { touch() },
		UpdateFunc: func(any, any) { touch() },
		DeleteFunc: func(any) { touch() },
	}
}

func (c *ConfigMaps) touch() {
	select {
	case c.changed <- struct{}{}:
	default: // a look is due already
	}
}

// Run reads and follows the ConfigMaps until the context ends.
func (c *ConfigMaps) Run(ctx context.Context) {
	for _, i := range c.informers {
		go i.RunWithContext(ctx)
	}
	for _, i := range c.informers {
		if !cache.WaitForCacheSync(ctx.Done(), i.HasSynced) {
			return
		}
	}
	c.touch() // both may be absent
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.changed:
			c.read()
		}
	}
}

// read makes a configuration of what the ConfigMaps hold now.
func (c *ConfigMaps) read() {
	source := "ConfigMaps " + config.DefaultsConfigMap + " and " + config.QueuesConfigMap + " in namespace " + c.namespace
	defaults, configs := c.get(0, config.DefaultsConfigMap), c.get(1, config.QueuesConfigMap)
	about := configs
	if about.UID == "" {
		about = defaults
	}
	document, _, err := config.FromConfigMaps(data(defaults), data(configs))
	if err != nil {
		c.handler.Failed(err, source, about)
		return
	}
	load(document, source, about, c.handler)
}

func data(m *corev1.ConfigMap) config.Source {
	return config.Source{Data: m.Data, BinaryData: m.BinaryData}
}

// get returns the ConfigMap, an empty one when it does not exist.
func (c *ConfigMaps) get(i int, name string) *corev1.ConfigMap {
	obj, exists, err := c.informers[i].GetStore().GetByKey(c.namespace + "/" + name)
	if m, ok := obj.(*corev1.ConfigMap); err == nil && exists && ok {
		return m
	}
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name}}
}

func load(document []byte, source string, about *corev1.ConfigMap, handler ConfigHandler) {
	spec, err := config.Parse(document)
	if err != nil {
		handler.Failed(err, source, about)
		return
	}
	handler.Loaded(spec, source)
}
