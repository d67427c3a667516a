// Package scheme makes upstream's scheme of scheduler configurations know the
// plugin arguments of this project. A binary imports it for that effect; tests
// use Codecs.
package scheme

import (
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	schedconfigv1 "k8s.io/kube-scheduler/config/v1"
	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	upstream "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"

	_ "github.com/paddock-scheduler/paddock/apis/config" // adds to upstream's scheme builders
)

// Codecs decode strictly: a field that is unknown or given twice is an error.
var Codecs = serializer.NewCodecFactory(upstream.Scheme, serializer.EnableStrict)

func init() {
	utilruntime.Must(schedconfig.AddToScheme(upstream.Scheme))
	utilruntime.Must(schedconfigv1.AddToScheme(upstream.Scheme))
}
