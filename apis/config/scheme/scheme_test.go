package scheme_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/runtime"
	configv1 "k8s.io/kube-scheduler/config/v1"
	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/apis/config/scheme"
	"github.com/paddock-scheduler/paddock/internal/expect"
)

// Every file in testdata is a list of configurations, each given as the part
// below "profiles:", and of what the scheduler makes of it. Commands:
//
//	decode     prints the arguments of our plugins, complete, as v1
//	document   the same for a whole document instead of the part
//
// Both also decode what they printed again and compare.
func TestDecode(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			document := d.Input
			if d.Cmd == "decode" {
				document = header + "profiles:\n" + d.Input
			}
			cfg, err := decode(document)
			if err != nil {
				return "error: " + err.Error() + "\n"
			}
			checkRoundTrip(t, cfg)
			return printOurs(t, cfg)
		})
	})
}

const header = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

func decode(document string) (*schedconfig.KubeSchedulerConfiguration, error) {
	obj, gvk, err := scheme.Codecs.UniversalDecoder().Decode([]byte(document), nil, nil)
	if err != nil {
		return nil, err
	}
	cfg, ok := obj.(*schedconfig.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("decoded a %s", gvk)
	}
	return cfg, nil
}

func encode(t *testing.T, obj runtime.Object) []byte {
	t.Helper()
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeYAML)
	if !ok {
		t.Fatal("no YAML serializer")
	}
	var buf bytes.Buffer
	encoder := scheme.Codecs.EncoderForVersion(info.Serializer, configv1.SchemeGroupVersion)
	expect.OK(t, encoder.Encode(obj, &buf))
	return buf.Bytes()
}

// checkRoundTrip encodes the configuration and decodes the result.
func checkRoundTrip(t *testing.T, cfg *schedconfig.KubeSchedulerConfiguration) {
	t.Helper()
	again := expect.Get(decode(string(encode(t, cfg))))(t)
	expect.Same(t, "encoding and decoding changed the profiles", cfg.Profiles, again.Profiles)
}

// printOurs prints the arguments of our plugins, one profile after the other.
func printOurs(t *testing.T, cfg *schedconfig.KubeSchedulerConfiguration) string {
	t.Helper()
	var out strings.Builder
	for _, profile := range cfg.Profiles {
		for _, plugin := range profile.PluginConfig {
			switch plugin.Args.(type) {
			case *config.QueueSortArgs, *config.QueuePreemptionArgs, *config.NodeReservationArgs:
				fmt.Fprintf(&out, "%s %s\n%s", profile.SchedulerName, plugin.Name, fields(t, encode(t, plugin.Args)))
			}
		}
	}
	if out.Len() == 0 {
		return "none of ours\n"
	}
	return out.String()
}

// fields renders an encoded object one indented field a line, without its type.
func fields(t *testing.T, encoded []byte) string {
	t.Helper()
	var object map[string]any
	expect.OK(t, sigsyaml.Unmarshal(encoded, &object))
	delete(object, "apiVersion")
	delete(object, "kind")
	text := expect.Get(sigsyaml.Marshal(object))(t)
	return "  " + strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n  ") + "\n"
}
