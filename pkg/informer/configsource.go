package informer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	// Unreadable is told why a ConfigMap cannot be read, again with every attempt,
	// from any goroutine. While one cannot be read from the start there is no
	// configuration; later the last one read counts.
	Unreadable(err error, namespace, configMap string)
}

// ConfigMaps reads the configuration from the two ConfigMaps of a namespace and
// follows their changes. The built-in configuration is for where there is no ConfigMap and
// was no document since the start. Anything else without a document is a mistake: quotas
// that were there must not go because a key was renamed.
type ConfigMaps struct {
	namespace string
	handler   ConfigHandler
	logger    klog.Logger
	informers []cache.SharedIndexInformer // defaults, configs
	changed   chan struct{}

	last    *outcome // of the last read; nil before the first
	had     bool     // a document was in force
	ignored string   // the keys that people were warned of
}

// outcome is what a read of the ConfigMaps gave: a document and the name of the cluster,
// or an error; and whether there has to be a document.
type outcome struct {
	document, cluster, err string
	expected               bool
}

// NewConfigMaps makes a source that reads nothing before Run.
func NewConfigMaps(client kubernetes.Interface, namespace string, handler ConfigHandler, logger klog.Logger) (*ConfigMaps, error) {
	c := &ConfigMaps{namespace: namespace, handler: handler, logger: logger, changed: make(chan struct{}, 1)}
	for _, name := range []string{config.DefaultsConfigMap, config.QueuesConfigMap} {
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
			informers.WithTweakListOptions(func(o *metav1.ListOptions) {
				o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
			}))
		informer := factory.Core().V1().ConfigMaps().Informer()
		if err := informer.SetWatchErrorHandlerWithContext(watchErrors(handler, logger, namespace, name)); err != nil {
			return nil, fmt.Errorf("watch ConfigMap %s/%s: %w", namespace, name, err)
		}
		if _, err := informer.AddEventHandler(handlerFor(c.touch)); err != nil {
			return nil, fmt.Errorf("watch ConfigMap %s/%s: %w", namespace, name, err)
		}
		c.informers = append(c.informers, informer)
	}
	return c, nil
}

// watchErrors says what to do when a ConfigMap cannot be read. Watches that end
// in good order, as they all do from time to time, are not worth a word.
func watchErrors(handler ConfigHandler, logger klog.Logger, namespace, name string) cache.WatchErrorHandlerWithContext {
	return func(ctx context.Context, r *cache.Reflector, err error) {
		cache.DefaultWatchErrorHandler(ctx, r, err)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
			apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			return
		}
		logger.Error(err, "The queue configuration cannot be read; if none was read since the start, no pod of a queue "+
			"is scheduled. Let the scheduler's service account list and watch ConfigMaps in the namespace",
			"namespace", namespace, "configMap", name)
		handler.Unreadable(err, namespace, name)
	}
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
			c.Read(c.get(0, config.DefaultsConfigMap), c.get(1, config.QueuesConfigMap))
		}
	}
}

// Read makes a configuration of what the ConfigMaps hold now; one without a UID is
// absent. The handler is told only if that is something else than before: labels
// change, watches begin anew, and an error is not worth repeating. Only Run calls it,
// or whoever does not.
func (c *ConfigMaps) Read(defaults, configs *corev1.ConfigMap) {
	source := "ConfigMaps " + config.DefaultsConfigMap + " and " + config.QueuesConfigMap + " in namespace " + c.namespace
	about := configs
	if about.UID == "" {
		about = defaults
	}
	document, options, err := config.FromConfigMaps(data(defaults), data(configs))
	now := outcome{
		document: string(document), cluster: options[config.ClusterIDOption],
		expected: c.had || defaults.UID != "" || configs.UID != "",
	}
	if err != nil {
		now.err = err.Error()
	} else {
		c.warn(ignoredKeys(options, data(defaults), data(configs)))
	}
	if c.last != nil && *c.last == now {
		return
	}
	c.last = &now
	if err != nil {
		c.handler.Failed(err, source, about)
		return
	}
	var absent error
	if now.expected {
		absent = config.ErrNoDocument(config.DocumentKey(options))
	}
	c.had = load(document, now.cluster, source, about, absent, c.handler) || c.had
}

// warn tells of keys that have no effect, once as long as they stay the same.
func (c *ConfigMaps) warn(keys []string) {
	text := strings.Join(keys, ", ")
	if text == c.ignored {
		return
	}
	c.ignored = text
	if text != "" {
		c.logger.Info("Keys of the ConfigMaps have no effect: only the queue document, service.policyGroup and service.clusterId are read. "+
			"Remove them, or correct the name if one was meant to be the document",
			"namespace", c.namespace, "keys", text)
	}
}

// ignoredKeys lists, sorted, the keys of the sources that are neither the queue
// document nor one of the options that are read. Options are what FromConfigMaps returned of the sources.
func ignoredKeys(options map[string]string, sources ...config.Source) []string {
	read := []string{config.DocumentKey(options), config.PolicyGroupOption, config.ClusterIDOption}
	ignored := map[string]bool{}
	for _, s := range sources {
		for key := range s.Data {
			ignored[key] = !slices.Contains(read, key)
		}
		for key := range s.BinaryData {
			plain, compressed := strings.CutSuffix(key, ".gz")
			ignored[key] = !compressed || !slices.Contains(read, plain)
		}
	}
	maps.DeleteFunc(ignored, func(_ string, ignored bool) bool { return !ignored })
	return slices.Sorted(maps.Keys(ignored))
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

// load tells of a document, and whether there is one. Absent is what is wrong if there is
// none; nil where the built-in configuration takes its place.
func load(document []byte, cluster, source string, about *corev1.ConfigMap, absent error, handler ConfigHandler) bool {
	spec, err := config.Parse(document)
	if err == nil && spec.IsDefault() {
		err = absent
	}
	if err != nil {
		handler.Failed(err, source, about)
		return false
	}
	spec.ClusterID = cluster
	handler.Loaded(spec, source)
	return !spec.IsDefault()
}
