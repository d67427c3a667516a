package reference

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write the page anew")

const (
	pagePath  = "../../docs/configuration.md"
	typesPath = "../../apis/config/types.go"
)

func TestPageIsUpToDate(t *testing.T) {
	arguments, err := ReadArguments(typesPath)
	if err != nil {
		t.Fatal(err)
	}
	want := Page(arguments)
	if *rewrite {
		if err := os.WriteFile(pagePath, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(pagePath)
	if err != nil {
		t.Fatalf("%v; make it with: go test ./internal/reference -rewrite", err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("the page and what it is made from (-) differ; make it anew with: go test ./internal/reference -rewrite\n%s", diff)
	}
}
