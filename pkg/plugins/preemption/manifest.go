package preemption

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1api "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"sigs.k8s.io/yaml"

	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// mostErrors is the maximal number of errors reported for a manifest.
const mostErrors = 10

func wrong(format string, args ...any) error {
	return &documents.ManifestError{Text: strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")}
}

// parseManifest reads a pod as the API server would: strictly, with defaults, and
// validated. It does not run admission.
func parseManifest(document []byte) (*corev1.Pod, error) {
	var kind metav1.TypeMeta
	switch err := yaml.Unmarshal(document, &kind); {
	case err != nil:
		return nil, wrong("the manifest is neither YAML nor JSON: %v", err)
	case kind.Kind == "":
		return nil, wrong("kind: is missing; it must be Pod")
	case kind.Kind != "Pod":
		return nil, wrong("kind: %q cannot be looked at, only Pod: give the pod that is made from its template", kind.Kind)
	case kind.APIVersion != "v1":
		return nil, wrong("apiVersion: is %q; it must be v1", kind.APIVersion)
	}
	pod := &corev1.Pod{}
	if _, _, err := strictly.Decode(document, nil, pod); err != nil {
		if field := badQuantity(document); field != "" {
			return nil, wrong("%s", field)
		}
		return nil, wrong("%s", strings.TrimPrefix(err.Error(), "strict decoding error: "))
	}
	return pod, applyDefaults(pod)
}

// strictly reads manifests and reports every unknown field with its path.
var strictly = serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, clientscheme.Scheme, clientscheme.Scheme,
	serializer.SerializerOptions{Yaml: true, Strict: true})

// badQuantity finds the container with an invalid quantity, because the decoder reports
// only that there is one. It returns an empty text if there is none.
func badQuantity(document []byte) string {
	var pod struct {
		Spec struct {
			Containers     []amountsAsWritten `json:"containers"`
			InitContainers []amountsAsWritten `json:"initContainers"`
		} `json:"spec"`
	}
	if yaml.Unmarshal(document, &pod) != nil {
		return ""
	}
	return cmp.Or(
		firstBad("containers", pod.Spec.Containers),
		firstBad("initContainers", pod.Spec.InitContainers))
}

// amountsAsWritten are the amounts of a container, by requests and limits and by type.
type amountsAsWritten struct {
	Resources map[string]map[string]any `json:"resources"`
}

// firstBad names the first quantity of a list of containers that is none; empty for none.
func firstBad(list string, containers []amountsAsWritten) string {
	for i, c := range containers {
		for _, part := range []string{"requests", "limits"} {
			for _, name := range slices.Sorted(maps.Keys(c.Resources[part])) {
				text := fmt.Sprint(c.Resources[part][name])
				if _, err := resource.ParseQuantity(text); err != nil {
					return fmt.Sprintf("spec.%s[%d].resources.%s[%s]: %q is no quantity, such as 500m or 1Gi",
						list, i, part, name, text)
				}
			}
		}
	}
	return ""
}

// applyDefaults sets the fields that a pod has once it exists, or reports what is wrong
// with it.
func applyDefaults(pod *corev1.Pod) error {
	if pod.Namespace == "" {
		pod.Namespace = metav1.NamespaceDefault
	}
	if pod.Name == "" && pod.GenerateName != "" {
		pod.Name = pod.GenerateName + "preview"
	}
	if pod.Spec.NodeName != "" {
		return wrong("spec.nodeName: is set, so no scheduler is asked about the pod")
	}
	pod.UID, pod.Status, pod.DeletionTimestamp, pod.ResourceVersion = previewUID, corev1.PodStatus{}, nil, ""
	profile := pod.Spec.SchedulerName
	corev1api.SetObjectDefaults_Pod(pod)
	internal := &core.Pod{}
	if err := corev1api.Convert_v1_Pod_To_core_Pod(pod.DeepCopy(), internal, nil); err != nil {
		return wrong("%v", err)
	}
	pod.Spec.SchedulerName = profile // the default is left to profileOf
	errs := validation.ValidatePodCreate(internal, validation.PodValidationOptions{PodLevelResourcesEnabled: true})
	if len(errs) == 0 {
		return nil
	}
	var texts []string
	for i, err := range errs {
		if i == mostErrors {
			texts = append(texts, fmt.Sprintf("and %d more", len(errs)-i))
			break
		}
		texts = append(texts, err.Error())
	}
	return wrong("%s", strings.Join(texts, "; "))
}

// previewUID is the UID of a pod that does not exist.
const previewUID types.UID = "preview"

// setAside removes from a pod what exists only once the pod does, and returns notes about
// it.
func setAside(pod *corev1.Pod) (notes []string) {
	volumes := pod.Spec.Volumes
	pod.Spec.Volumes = nil
	for i := range volumes {
		if volumes[i].Ephemeral != nil {
			notes = append(notes, fmt.Sprintf("volume %s: its claim is made with the pod; where its storage can be was left out", volumes[i].Name))
			continue
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, volumes[i])
	}
	claims := pod.Spec.ResourceClaims
	pod.Spec.ResourceClaims = nil
	for i := range claims {
		if claims[i].ResourceClaimTemplateName != nil {
			notes = append(notes, fmt.Sprintf("resource claim %s: it is made with the pod; its devices were left out", claims[i].Name))
			continue
		}
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, claims[i])
	}
	return notes
}
