package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// FuzzParse expects of any text that it is refused with problems, or accepted with a
// specification that is the same each time.
func FuzzParse(f *testing.F) {
	for _, document := range seeds(f) {
		f.Add([]byte(document))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		spec, err := Parse(document)
		if err != nil {
			var invalid *InvalidError
			if !errors.As(err, &invalid) || len(invalid.Problems) == 0 {
				t.Fatalf("refused without problems: %v", err)
			}
			if n := strings.Count(err.Error(), "\n") + 1; n != len(invalid.Problems) {
				t.Fatalf("%d lines for %d problems: %q", n, len(invalid.Problems), err.Error())
			}
			return
		}
		again, err := Parse(document)
		if err != nil || again.Dump() != spec.Dump() || len(Diff(spec, again)) > 0 {
			t.Fatalf("read differently the second time: %v", err)
		}
	})
}

// FuzzConfigMaps expects of what two ConfigMaps have that it is refused with the name of
// the ConfigMap, or gives a document that is one of theirs or unpacked from one, and
// options that are no documents.
func FuzzConfigMaps(f *testing.F) {
	packed := expect.Gzipped("partitions: []")
	f.Add("queues.yaml", "partitions: []", "queues.yaml.gz", packed)
	f.Add("service.policyGroup", "other", "other.yaml.gz", packed[:10])
	f.Add("queues.yaml.gz", "", "queues.yaml", []byte("\xff"))
	f.Add("log.level", "7", "", []byte{})
	f.Fuzz(func(t *testing.T, key, value, packedKey string, packed []byte) {
		configs := Source{Data: map[string]string{key: value}, BinaryData: map[string][]byte{packedKey: packed}}
		document, options, err := FromConfigMaps(Source{}, configs)
		if err != nil {
			if !strings.Contains(err.Error(), QueuesConfigMap) || document != nil || options != nil {
				t.Errorf("%q, %v, %v", document, options, err)
			}
			return
		}
		if text, err := unpack(packed); len(document) > 0 && string(document) != value && (err != nil || string(document) != text) {
			t.Errorf("document %q is in no ConfigMap", document)
		}
		for name := range options {
			expect.That(t, !strings.HasSuffix(name, documentSuffix), "option %q is a document", name)
		}
	})
}

// seeds returns the inputs of all files in testdata.
func seeds(f *testing.F) (out []string) {
	for _, path := range expect.Get(filepath.Glob("testdata/*/*.txt"))(f) {
		content := string(expect.Get(os.ReadFile(path))(f))
		for block := range strings.SplitSeq(content, "\nparse\n") {
			if document, _, ok := strings.Cut(block, "----"); ok && !strings.HasPrefix(block, "#") {
				out = append(out, document)
			}
		}
	}
	expect.That(f, len(out) >= 50, "only %d seeds", len(out))
	return out
}
