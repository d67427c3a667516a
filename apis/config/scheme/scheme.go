// Package scheme makes upstream's scheme of scheduler configurations know the
// plugin arguments of this project. A binary imports it for that effect; tests
// use Codecs.
package scheme

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	upstream "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"

	"github.com/paddock-scheduler/paddock/apis/config"
	configv1 "github.com/paddock-scheduler/paddock/apis/config/v1"
)

// Scheme is upstream's scheme, which also knows the plugin arguments.
var Scheme = upstream.Scheme

// Codecs decode strictly: a field that is unknown or given twice is an error.
var Codecs = serializer.NewCodecFactory(Scheme, serializer.EnableStrict)

func init() {
	AddToScheme(Scheme)
}

// AddToScheme adds the internal and the v1 types of scheduler configurations
// and of our plugin arguments. It panics if a kind is registered twice with
// different types.
func AddToScheme(scheme *runtime.Scheme) {
	utilruntime.Must(config.AddToScheme(scheme))
	utilruntime.Must(configv1.AddToScheme(scheme))
}
