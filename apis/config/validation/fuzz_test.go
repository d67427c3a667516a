package validation_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/apis/config/scheme"
	"github.com/paddock-scheduler/paddock/internal/expect"
)

// FuzzArguments reads anything as the arguments of each plugin: they are refused with a
// sentence, by the decoder or by the validation, or they are valid.
func FuzzArguments(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) != 3 {
		f.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		text := expect.Get(os.ReadFile(file))(f)
		for part := range strings.SplitSeq(string(text), "\n\n") {
			given, _, _ := strings.Cut(part, "\n----\n")
			_, fields, _ := strings.Cut(given, "Args\n")
			f.Add([]byte(fields))
		}
	}
	f.Fuzz(func(t *testing.T, fields []byte) {
		for _, kind := range []string{"QueueSortArgs", "QueuePreemptionArgs", "NodeReservationArgs"} {
			document := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: " + kind + "\n" + string(fields)
			obj, gvk, err := scheme.Codecs.UniversalDecoder().Decode([]byte(document), nil, nil)
			if err == nil && gvk.Kind != kind {
				continue // the fields name another one
			}
			if err == nil {
				err = validate(t, obj)
			}
			if err != nil && strings.TrimSpace(err.Error()) == "" {
				t.Errorf("%s are refused without a word", kind)
			}
		}
	})
}
