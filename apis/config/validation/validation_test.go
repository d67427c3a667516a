package validation_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/apis/config/scheme"
	"github.com/paddock-scheduler/paddock/apis/config/validation"
)

// Every file in testdata is a list of arguments of one plugin and of the mistakes found in them. The
// command is the kind, the input its fields; they are decoded and defaulted as the scheduler does it.
func TestValidate(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			document := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: " + d.Cmd + "\n" + d.Input
			obj, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(document), nil, nil)
			if err != nil {
				t.Fatalf("%s: decode: %v", d.Pos, err)
			}
			return report(t, validate(t, obj))
		})
	})
}

func validate(t *testing.T, obj runtime.Object) error {
	t.Helper()
	switch args := obj.(type) {
	case *config.QueueSortArgs:
		return validation.ValidateQueueSortArgs(args)
	case *config.QueuePreemptionArgs:
		return validation.ValidateQueuePreemptionArgs(args)
	case *config.NodeReservationArgs:
		return validation.ValidateNodeReservationArgs(args)
	}
	t.Fatalf("no validation for %T", obj)
	return nil
}

// report prints one mistake a line.
func report(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return "valid\n"
	}
	var list utilerrors.Aggregate
	if !errors.As(err, &list) {
		t.Fatalf("%T is not a list of errors", err)
	}
	var out strings.Builder
	for _, mistake := range list.Errors() {
		fmt.Fprintln(&out, mistake)
	}
	return out.String()
}
