package placement

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// NamespaceQuota reads what the annotations of a namespace grant to the dynamic
// queue that is made for it; nil for nothing. An annotation that cannot
// be read is left out as a whole, as if it were not there; its error names
// annotation and value. A max that cannot be read is not replaced by the
// deprecated annotations. Errors come in a fixed order.
func NamespaceQuota(annotations map[string]string) (*config.Quota, []error) {
	r := quotaReader{annotations: annotations}
	limit := r.amounts(KeyNamespaceMax)
	if annotations[KeyNamespaceMax] == "" {
		limit = r.deprecatedMax()
	}
	guaranteed := r.amounts(KeyNamespaceGuaranteed)
	applications := r.count(KeyNamespaceMaxApps)
	if len(limit) == 0 && len(guaranteed) == 0 && applications == 0 {
		return nil, r.errs
	}
	return &config.Quota{
		Guaranteed: resources.GuaranteeFrom(guaranteed), Max: resources.LimitFrom(limit), MaxApplications: applications,
	}, r.errs
}

// quotaReader collects the errors of all annotations of one namespace.
type quotaReader struct {
	annotations map[string]string
	errs        []error
}

func (r *quotaReader) fail(key string, err error) {
	r.errs = append(r.errs, fmt.Errorf("namespace annotation %s is ignored: value %s: %w", key, quote(r.annotations[key]), err))
}

// amounts reads an annotation that holds a JSON object of quantities; nil when
// it is absent or not readable.
func (r *quotaReader) amounts(key string) map[string]resources.Amount {
	text := r.annotations[key]
	if text == "" {
		return nil
	}
	out, err := parseAmounts(text)
	if err != nil {
		r.fail(key, err)
		return nil
	}
	return out
}

// deprecatedMax reads the annotations of one quantity each; empty when neither is
// there or readable.
func (r *quotaReader) deprecatedMax() map[string]resources.Amount {
	out := map[string]resources.Amount{}
	for _, single := range []struct{ key, resource string }{
		{KeyNamespaceMaxCPU, "cpu"},
		{KeyNamespaceMaxMemory, "memory"},
	} {
		text := r.annotations[single.key]
		if text == "" {
			continue
		}
		name, amount, err := parseAmount(single.resource, text)
		if err == nil && amount == 0 {
			err = errAllZero
		}
		if err != nil {
			r.fail(single.key, err)
			continue
		}
		out[name] = amount
	}
	return out
}

func (r *quotaReader) count(key string) uint64 {
	text := r.annotations[key]
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
	if err != nil {
		r.fail(key, errors.New("must be a whole number, 0 or more"))
		return 0
	}
	return n
}

var errAllZero = errors.New("at least one amount must be above 0; an amount of 0 forbids a type only beside others")

func parseAmounts(text string) (map[string]resources.Amount, error) {
	var raw map[string]json.RawMessage
	err := json.Unmarshal([]byte(text), &raw)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		err = fmt.Errorf("it is a JSON %s", wrong.Value)
	}
	if err != nil {
		return nil, fmt.Errorf(`must be a JSON object such as {"cpu":"10","memory":"64Gi"}: %w`, err)
	}
	out := make(map[string]resources.Amount, len(raw))
	positive := false
	for _, resource := range slices.Sorted(maps.Keys(raw)) {
		name, amount, err := parseAmount(resource, unquoted(raw[resource]))
		if err != nil {
			return nil, err
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("resource %s is given twice, as cpu and as %s", quote(resource), resources.CPU)
		}
		out[name] = amount
		positive = positive || amount > 0
	}
	if !positive {
		return nil, errAllZero
	}
	return out, nil
}

// unquoted returns the content of a JSON string, or the text of a JSON number:
// Kubernetes takes quantities in both forms.
func unquoted(raw json.RawMessage) string {
	var s string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}
