package config

import "cmp"

const (
	// DefaultConfigNamespace is the namespace of the ConfigMaps when neither the
	// arguments nor the environment name one.
	DefaultConfigNamespace = "yunikorn"
	// PodNamespaceEnv is the environment variable that names the namespace this
	// process runs in; a Deployment sets it from metadata.namespace.
	PodNamespaceEnv = "POD_NAMESPACE"
)

// EffectiveConfigNamespace returns the namespace of the ConfigMaps: the
// argument, or if that is empty the value of PodNamespaceEnv, or if that is
// empty too DefaultConfigNamespace. Pass os.Getenv as getenv. A plugin asks
// once, when it is made, and not when the configuration is decoded: so a
// configuration written out and read elsewhere keeps its meaning.
func (in *QueueSortArgs) EffectiveConfigNamespace(getenv func(string) string) string {
	return cmp.Or(in.ConfigNamespace, getenv(PodNamespaceEnv), DefaultConfigNamespace)
}
