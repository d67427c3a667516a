package simulation_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"runtime"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/paddock-scheduler/paddock/pkg/plugins/podgroups"
)

// Readers of PodGroups make their own clients from an address and a transport. This is
// the transport: it answers within the process, and fails as other calls do.

// groupWatches is how many watches of PodGroups a process has: upstream's plugin, ours
// and the scheduler's queue have one each.
const groupWatches = 3

func (in *instance) restConfig() *rest.Config {
	return &rest.Config{Host: "http://simulated", QPS: -1, Transport: transport{in}}
}

type transport struct{ in *instance }

var podGroupsPath = "/apis/" + v1alpha1.SchemeGroupVersion.String()

// RoundTrip answers the requests of PodGroup clients.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	switch {
	case r.Method != http.MethodGet:
		return nil, fmt.Errorf("this API server does not know %s %s", r.Method, r.URL)
	case r.URL.Path == "/api":
		return answer(&metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}})
	case r.URL.Path == "/apis":
		version := metav1.GroupVersionForDiscovery{GroupVersion: v1alpha1.SchemeGroupVersion.String(), Version: v1alpha1.SchemeGroupVersion.Version}
		return answer(&metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{
			{Name: v1alpha1.SchemeGroupVersion.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version},
		}})
	case r.URL.Path == podGroupsPath:
		return answer(&metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: v1alpha1.SchemeGroupVersion.String(),
			APIResources: []metav1.APIResource{{Name: "podgroups", SingularName: "podgroup", Namespaced: true, Kind: "PodGroup", Verbs: metav1.Verbs{"list", "watch"}}},
		})
	case r.URL.Path != podGroupsPath+"/podgroups":
		return refused(apierrors.NewNotFound(t.in.api.groups.resource, r.URL.Path))
	case query.Get("sendInitialEvents") != "":
		return refused(apierrors.NewBadRequest("this API server lists, and watches then"))
	case query.Get("watch") != "":
		return t.watch(r, metav1.ListOptions{ResourceVersion: query.Get("resourceVersion"), FieldSelector: query.Get("fieldSelector")})
	}
	list, err := t.list(r.Context())
	if err != nil {
		return refused(err)
	}
	return answer(t.in.sim.groupWrongly(list))
}

// list lists PodGroups. A dead process gets an answer at once, because upstream's plugin
// blocks the informer of pods until its first list succeeds, and ignores the end of its
// context.
func (t transport) list(ctx context.Context) (kruntime.Object, error) {
	if t.in.isDead() {
		return t.in.api.listed(t.in.api.groups, "", "")
	}
	return reader[*v1alpha1.PodGroupList]{t.in, t.in.api.groups, ""}.List(ctx, metav1.ListOptions{})
}

// watch opens a watch and writes its events as they come.
func (t transport) watch(r *http.Request, o metav1.ListOptions) (*http.Response, error) {
	w, err := reader[*v1alpha1.PodGroupList]{t.in, t.in.api.groups, ""}.Watch(r.Context(), o)
	if err != nil {
		return refused(err)
	}
	body, to := io.Pipe()
	go func() {
		defer w.Stop()
		for {
			select {
			case <-r.Context().Done():
				_ = to.CloseWithError(r.Context().Err())
				return
			case event, ok := <-w.ResultChan():
				if !ok || writeEvent(to, event.Type, t.in.sim.groupWrongly(event.Object)) != nil {
					_ = to.Close()
					return
				}
			}
		}
	}()
	return response(http.StatusOK, body), nil
}

func writeEvent(to io.Writer, kind watch.EventType, o kruntime.Object) error {
	raw, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return json.NewEncoder(to).Encode(metav1.WatchEvent{Type: string(kind), Object: kruntime.RawExtension{Raw: raw}})
}

func answer(o any) (*http.Response, error) {
	raw, err := json.Marshal(o)
	return response(http.StatusOK, io.NopCloser(bytes.NewReader(raw))), err
}

// refused turns an error into an answer; an error that is no answer is returned as a
// network error.
func refused(err error) (*http.Response, error) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return nil, err
	}
	says := status.Status()
	says.Kind, says.APIVersion = "Status", "v1"
	raw, err := json.Marshal(says)
	return response(int(says.Code), io.NopCloser(bytes.NewReader(raw))), err
}

func response(code int, body io.ReadCloser) *http.Response {
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": []string{kruntime.ContentTypeJSON}}, Body: body, ContentLength: -1,
	}
}

// Upstream's plugin has two caches, each with a goroutine that goes on until the garbage
// collector ends it. The collector is not in the bubble, where time is virtual, and may
// not touch its channels.

// janitor is the private type of go-cache.
type janitor struct {
	interval time.Duration
	stop     chan bool
}

// janitors removes the finalizers that would end a plugin's janitors; the caller has to
// end them.
func janitors(plugin *podgroups.Plugin) []*janitor {
	theirs := reflect.ValueOf(plugin).Elem().FieldByName("upstream").Elem()
	manager := theirs.Elem().FieldByName("pgMgr").Elem().Elem()
	var out []*janitor
	for _, field := range []string{"permittedPG", "backedOffPG"} {
		kept := manager.FieldByName(field)
		runtime.SetFinalizer((*byte)(kept.UnsafePointer()), nil) // of the object that begins there
		out = append(out, (*janitor)(kept.Elem().FieldByName("cache").Elem().FieldByName("janitor").UnsafePointer()))
	}
	return out
}
