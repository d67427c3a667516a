package config

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// The names of the two ConfigMaps, in the order in which they are applied.
const (
	DefaultsConfigMap = "yunikorn-defaults"
	QueuesConfigMap   = "yunikorn-configs"
)

const (
	// PolicyGroupOption is the service option that names the queue document.
	PolicyGroupOption = "service.policyGroup"
	// defaultPolicyGroup is that name where the option is not set.
	defaultPolicyGroup = "queues"
	// ClusterIDOption is the service option that names the cluster for readers.
	ClusterIDOption  = "service.clusterId"
	compressedSuffix = ".gz"
	documentSuffix   = ".yaml"
)

// Source is the content of a ConfigMap; the zero value is one that is absent.
type Source struct {
	Data       map[string]string
	BinaryData map[string][]byte
}

// FromConfigMaps merges the ConfigMaps key by key, configs over defaults, and
// returns the queue document and the service options.
//
// Keys of BinaryData that end in .gz are unpacked, up to [MaxDocumentBytes], and
// lose the suffix; they win over a key of that name in the Data of the same
// ConfigMap. Other keys of BinaryData are not looked at, except where one holds
// the document itself, which is an error. The document is the value of key
// "<service.policyGroup>.yaml", by default "queues.yaml"; it is empty where the
// key is missing. Options are all keys that do not end in .yaml.
//
// The error names every ConfigMap and key that cannot be used.
func FromConfigMaps(defaults, configs Source) (document []byte, options map[string]string, err error) {
	first, err1 := flatten(DefaultsConfigMap, defaults)
	second, err2 := flatten(QueuesConfigMap, configs)
	maps.Copy(first, second)
	key := DocumentKey(first)
	err = errors.Join(err1, err2, binaryDocument(DefaultsConfigMap, key, defaults), binaryDocument(QueuesConfigMap, key, configs))
	if err != nil {
		return nil, nil, err
	}
	document = []byte(first[key])
	maps.DeleteFunc(first, func(key, _ string) bool { return strings.HasSuffix(key, documentSuffix) })
	return document, first, nil
}

// ErrNoDocument is what is wrong where a document is expected and there is none, or one
// with nothing but blanks and comments. Key is that of the ConfigMaps; empty for a file.
func ErrNoDocument(key string) error {
	where := "the file is empty"
	if key != "" {
		where = fmt.Sprintf("key %s, which option %s names, is in neither ConfigMap, or is empty", key, PolicyGroupOption)
	}
	return fmt.Errorf("there is no queue document: %s. Write the document there; "+
		"for a queue without quota for each namespace that is: %s", where, DefaultDocument)
}

// DocumentKey is the key of the document, by the options that FromConfigMaps returned.
func DocumentKey(options map[string]string) string {
	return cmp.Or(options[PolicyGroupOption], defaultPolicyGroup) + documentSuffix
}

// flatten returns all values of a ConfigMap as text.
func flatten(name string, s Source) (map[string]string, error) {
	out := map[string]string{}
	maps.Copy(out, s.Data)
	var failed []error
	for _, key := range slices.Sorted(maps.Keys(s.BinaryData)) {
		plain, compressed := strings.CutSuffix(key, compressedSuffix)
		if !compressed {
			continue
		}
		text, err := unpack(s.BinaryData[key])
		if err != nil {
			failed = append(failed, fmt.Errorf("configmap %s, binaryData key %s: %w", name, key, err))
			continue
		}
		out[plain] = text
	}
	return out, errors.Join(failed...)
}

func unpack(packed []byte) (string, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return "", fmt.Errorf("not a gzip file: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(reader, MaxDocumentBytes+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("broken gzip file: %w", err)
	case len(text) > MaxDocumentBytes:
		return "", fmt.Errorf("unpacks to more than %d bytes", MaxDocumentBytes)
	}
	return string(text), nil
}

// binaryDocument refuses a document that Kubernetes stored as binary because it
// is not UTF-8: it would be overlooked, and the default queues would apply.
func binaryDocument(name, key string, s Source) error {
	if _, there := s.BinaryData[key]; there {
		return fmt.Errorf("configmap %s, binaryData key %s: the document must be UTF-8 text under data, or gzip under %s%s",
			name, key, key, compressedSuffix)
	}
	return nil
}
