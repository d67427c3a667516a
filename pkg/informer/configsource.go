package informer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
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

// ConfigHandler receives every configuration that was read.
type ConfigHandler interface {
	// Loaded receives a valid configuration and its source.
	Loaded(spec *config.Spec, source string)
	// Failed receives the reason why a configuration cannot be used. The previous one, if
	// any, stays in force. About is the object on which to report the error; nil for a
	// file.
	Failed(err error, source string, about *corev1.ConfigMap)
	// Unreadable receives the reason why a ConfigMap cannot be read. It is called after
	// every attempt, from any goroutine. If a ConfigMap was never readable, there is no
	// configuration; otherwise the last one read stays in force.
	Unreadable(err error, namespace, configMap string)
}

// ConfigMaps reads the configuration from the two ConfigMaps of a namespace and follows
// their changes. It uses the built-in configuration only if there is no ConfigMap and
// there was no document since the start. Any other state without a document is an error:
// quotas must not disappear because a key was renamed. For the same reason a document of
// yunikorn-defaults does not follow one of yunikorn-configs.
type ConfigMaps struct {
	namespace string
	handler   ConfigHandler
	logger    klog.Logger
	informers []cache.SharedIndexInformer // defaults, configs
	changed   chan struct{}

	last    *outcome // of the last read; nil before the first
	had     bool     // a document was in force
	own     bool     // one of yunikorn-configs was
	ignored string   // the keys that were warned about
}

// outcome is the result of reading the ConfigMaps: a document with its source and the name of
// the cluster, or an error; whether a document is required, and whether yunikorn-configs has it.
type outcome struct {
	document, source, cluster, err string
	expected, own                  bool
}

// NewConfigMaps makes a source. It reads nothing before Run.
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
		if _, err := informer.AddEventHandler(Handler(func(_, _ *corev1.ConfigMap) { c.touch() }, func(*corev1.ConfigMap) { c.touch() })); err != nil {
			return nil, fmt.Errorf("watch ConfigMap %s/%s: %w", namespace, name, err)
		}
		c.informers = append(c.informers, informer)
	}
	return c, nil
}

// watchErrors returns the handler of read errors of a ConfigMap. It ignores watches that
// end regularly, which happens from time to time.
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

func (c *ConfigMaps) touch() {
	select {
	case c.changed <- struct{}{}:
	default: // a read is already pending
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

// Read loads the current content of the ConfigMaps; one without a UID counts as absent.
// It calls the handler only if the result differs from the previous one, because labels
// change, watches restart, and an error need not be repeated. While Run runs, only Run
// may call it.
func (c *ConfigMaps) Read(defaults, configs *corev1.ConfigMap) {
	source := "ConfigMaps " + config.DefaultsConfigMap + " and " + config.QueuesConfigMap + " in namespace " + c.namespace
	about := configs
	if about.UID == "" && defaults.UID != "" {
		about = defaults
	}
	document, options, err := config.FromConfigMaps(data(defaults), data(configs))
	key := config.DocumentKey(options)
	own := hasKey(configs, key)
	like := slices.DeleteFunc(ignoredKeys(options, data(configs)), func(k string) bool { return !documentName.MatchString(k) })
	ofDefaults := err == nil && !own && hasKey(defaults, key)
	switch {
	case ofDefaults && (c.own || len(like) > 0):
		err = ErrFallsBack(key, like)
	case ofDefaults && configs.UID != "":
		source += "; the document is that of " + config.DefaultsConfigMap + ", because " + config.QueuesConfigMap + " has no key " + key
	}
	now := outcome{
		document: string(document), source: source, cluster: options[config.ClusterIDOption],
		expected: c.had || defaults.UID != "" || configs.UID != "", own: own,
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
		absent = config.ErrNoDocument(key)
	}
	if load(document, now.cluster, source, about, absent, c.handler) {
		c.had, c.own = true, own
	}
}

// hasKey reports whether the ConfigMap has the key, packed or not.
func hasKey(m *corev1.ConfigMap, key string) bool {
	_, plain := m.Data[key]
	_, packed := m.BinaryData[key+".gz"]
	return plain || packed
}

// documentName matches keys that may be a misspelt name of the document.
var documentName = regexp.MustCompile(`(?i)\.ya?ml`)

// ErrFallsBack is what is wrong where the document of ConfigMap yunikorn-configs is gone, or
// under the keys like, and yunikorn-defaults has one. Key is that of the document.
func ErrFallsBack(key string, like []string) error {
	has, remove := "had it and has", ""
	if len(like) > 0 {
		has, remove = "has key "+strings.Join(like, ", ")+" and", ", and remove key "+strings.Join(like, ", ")
	}
	return fmt.Errorf("there is no queue document: ConfigMap %[1]s %[4]s no key %[2]s, and that of ConfigMap %[3]s does not take "+
		"its place. Write the document to key %[2]s of %[1]s, or that of %[3]s%[5]s", config.QueuesConfigMap, key, config.DefaultsConfigMap, has, remove)
}

// warn logs keys that have no effect, once while they stay the same.
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

// ignoredKeys lists, sorted, the keys of the sources that are neither the queue document nor an
// option that is read, and those of which the packed key is read. Options are those that
// FromConfigMaps returned for the sources.
func ignoredKeys(options map[string]string, sources ...config.Source) []string {
	read := []string{config.DocumentKey(options), config.PolicyGroupOption, config.ClusterIDOption}
	var ignored []string
	for _, s := range sources {
		for key := range s.Data {
			_, packed := s.BinaryData[key+".gz"]
			switch {
			case !slices.Contains(read, key):
				ignored = append(ignored, key)
			case packed:
				ignored = append(ignored, key+" (key "+key+".gz takes its place)")
			}
		}
		for key := range s.BinaryData {
			if plain, packed := strings.CutSuffix(key, ".gz"); !packed || !slices.Contains(read, plain) {
				ignored = append(ignored, key)
			}
		}
	}
	slices.Sort(ignored)
	return slices.Compact(ignored)
}

func data(m *corev1.ConfigMap) config.Source {
	return config.Source{Data: m.Data, BinaryData: m.BinaryData}
}

// get returns the ConfigMap, or an empty one if it does not exist.
func (c *ConfigMaps) get(i int, name string) *corev1.ConfigMap {
	obj, exists, err := c.informers[i].GetStore().GetByKey(c.namespace + "/" + name)
	if m, ok := obj.(*corev1.ConfigMap); err == nil && exists && ok {
		return m
	}
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name}}
}

// load passes a document to the handler, or the error that there is none. Absent is that
// error; with nil the built-in configuration is used.
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
