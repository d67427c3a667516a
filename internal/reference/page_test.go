package reference

import (
	"flag"
	"os"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

var rewrite = flag.Bool("rewrite", false, "write the page anew")

const (
	pagePath  = "../../docs/configuration.md"
	typesPath = "../../apis/config/types.go"
)

func TestPageIsUpToDate(t *testing.T) {
	arguments := expect.Get(ReadArguments(typesPath))(t)
	want := Page(arguments)
	if *rewrite {
		expect.OK(t, os.WriteFile(pagePath, []byte(want), 0o644))
	}
	got, err := os.ReadFile(pagePath)
	if err != nil {
		t.Fatalf("%v; make it with: go test ./internal/reference -rewrite", err)
	}
	expect.Same(t, "the page and what it is made from (-) differ; make it anew with: go test ./internal/reference -rewrite", want, string(got))
}
