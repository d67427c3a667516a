package config

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// FuzzParse expects of any text that it is refused with problems, or accepted
// with a specification that keeps the rules as the naive checker knows them.
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
		if err := checkSpec(spec); err != nil {
			t.Fatalf("accepted against the rules: %v\n%s", err, spec.Dump())
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
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte("partitions: []")); err != nil {
		f.Fatal(err)
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add("queues.yaml", "partitions: []", "queues.yaml.gz", packed.Bytes())
	f.Add("service.policyGroup", "other", "other.yaml.gz", packed.Bytes()[:10])
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
			if strings.HasSuffix(name, documentSuffix) {
				t.Errorf("option %q is a document", name)
			}
		}
	})
}

// FuzzQuantity expects of any quantity that it is refused, or written back to
// something that is read as the same amount.
func FuzzQuantity(f *testing.F) {
	for _, text := range []string{"0", "10", "500m", " 16 Gi ", "8Ei", "9E", "1.5", "-1", "99999999999999999999"} {
		f.Add("vcore", text)
		f.Add("memory", text)
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		amount, err := ParseQuantity(name, text)
		if err != nil {
			known := errors.Is(err, ErrQuantity) || errors.Is(err, ErrSuffix) || errors.Is(err, ErrOverflow)
			if !known || amount != 0 || !strings.Contains(err.Error(), strconv.Quote(text)) {
				t.Fatalf("%s %q: %d, and refused by %q, which is of no kind or does not say what it is about", name, text, amount, err)
			}
			return
		}
		if amount < 0 {
			t.Fatalf("%s %q is negative: %d", name, text, amount)
		}
		if back, err := ParseQuantity(name, FormatQuantity(name, amount)); err != nil || back != amount {
			t.Fatalf("%s %q: %d is read back as %d, %v", name, text, amount, back, err)
		}
	})
}

// seeds returns the inputs of all files in testdata.
func seeds(f *testing.F) []string {
	var out []string
	err := filepath.WalkDir("testdata", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".txt" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for block := range strings.SplitSeq(string(content), "\nparse\n") {
			if document, _, ok := strings.Cut(block, "----"); ok && !strings.HasPrefix(block, "#") {
				out = append(out, document)
			}
		}
		return nil
	})
	if err != nil || len(out) < 50 {
		f.Fatalf("%d seeds, %v", len(out), err)
	}
	return out
}
