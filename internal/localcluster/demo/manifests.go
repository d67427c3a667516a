package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// The label of all objects that this package applies.
const (
	OwnerLabel = "app.kubernetes.io/managed-by"
	OwnerValue = "paddock-local-cluster"
)

// Read returns the objects of all *.yaml files in a directory, by file name and then
// in the order of the file. The error names the file.
func Read(files fs.FS) ([]*unstructured.Unstructured, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list manifests: %w", err)
	}
	slices.Sort(names)
	var out []*unstructured.Unstructured
	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("read manifest: %w", err)
		}
		objects, err := decode(data)
		if err != nil {
			return nil, fmt.Errorf("manifest %s: %w", name, err)
		}
		out = append(out, objects...)
	}
	return out, nil
}

func decode(data []byte) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 1024); ; {
		object := &unstructured.Unstructured{}
		switch err := documents.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, err
		}
		if len(object.Object) == 0 {
			continue // only comments
		}
		if object.GetKind() == "" || object.GetName() == "" {
			return nil, fmt.Errorf("document %d has no kind or no metadata.name", len(out)+1)
		}
		out = append(out, object)
	}
}

// Applier creates objects and removes those that it created.
type Applier struct {
	client dynamic.Interface
	mapper meta.RESTMapper
	mine   []*unstructured.Unstructured
}

// NewApplier returns an applier for a cluster.
func NewApplier(config *rest.Config) (*Applier, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for samples: %w", err)
	}
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for samples: %w", err)
	}
	return &Applier{client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discoverer))}, nil
}

// Apply creates the objects in this order. An object that exists is left as it is;
// existing objects of another origin are returned as "Kind namespace/name". Apply waits
// half a minute for what an earlier run has deleted to be gone, and for the service account
// that pods in a new namespace need.
func (a *Applier) Apply(ctx context.Context, objects []*unstructured.Unstructured) (foreign []string, err error) {
	for _, o := range objects {
		ours, err := a.create(ctx, o.DeepCopy())
		if err != nil {
			return foreign, fmt.Errorf("create %s: %w", describe(o), err)
		}
		if ours {
			a.mine = append(a.mine, o)
		} else {
			foreign = append(foreign, describe(o))
		}
	}
	return foreign, nil
}

// create makes one object and tells whether it is ours, made now or by an earlier run.
func (a *Applier) create(ctx context.Context, o *unstructured.Unstructured) (ours bool, err error) {
	client, err := a.resource(o)
	if err != nil {
		return false, err
	}
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[OwnerLabel] = OwnerValue
	o.SetLabels(labels)
	var there *unstructured.Unstructured
	polled := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		there, err = client.Create(ctx, o, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			there, err = client.Get(ctx, o.GetName(), metav1.GetOptions{})
			return !apierrors.IsNotFound(err) && (err != nil || there.GetDeletionTimestamp() == nil), nil
		}
		return !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "serviceaccount"), nil
	})
	switch {
	case polled != nil && ctx.Err() != nil:
		return false, context.Cause(ctx)
	case err != nil:
		return false, err
	case there.GetDeletionTimestamp() != nil:
		return false, fmt.Errorf("it was deleted at %v and is not gone", there.GetDeletionTimestamp())
	}
	return there.GetLabels()[OwnerLabel] == OwnerValue, nil
}

// Remove deletes, in reverse order, the objects that Apply created; a missing one is no
// error. The contents of a deleted namespace disappear a little later.
func (a *Applier) Remove(ctx context.Context) error {
	var errs []error
	for _, o := range slices.Backward(a.mine) {
		client, err := a.resource(o)
		if err == nil {
			err = client.Delete(ctx, o.GetName(), metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("delete %s: %w", describe(o), err))
		}
	}
	a.mine = nil
	return errors.Join(errs...)
}

func (a *Applier) resource(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := o.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("find the resource of kind %s: %w", kind.Kind, err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return a.client.Resource(mapping.Resource).Namespace(o.GetNamespace()), nil
	}
	return a.client.Resource(mapping.Resource), nil
}

func describe(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return o.GetKind() + " " + o.GetName()
	}
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}
