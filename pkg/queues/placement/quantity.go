package placement

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Bounds on the text of a quantity. The parser of Kubernetes takes any length
// and any exponent, with seconds of work for the largest ones.
const (
	maxQuantityText = 64
	maxExponentText = 3 // sign and two digits
)

// parseAmount reads one quantity in Kubernetes syntax and returns the type's
// name here with its amount in base units, rounded up. cpu becomes
// [resources.CPU] in milli-CPU; so does a type that has that name already,
// because that is what queues.yaml calls it. All other types keep their name.
func parseAmount(name, text string) (string, resources.Amount, error) {
	if name == "" {
		return "", 0, errors.New("a resource has no name")
	}
	ours, scale := name, resource.Scale(0)
	if name == "cpu" || name == resources.CPU {
		ours, scale = resources.CPU, resource.Milli
	}
	amount, err := parseQuantity(strings.TrimSpace(text), scale)
	if err != nil {
		return "", 0, fmt.Errorf("resource %s: quantity %s %w", quote(name), quote(text), err)
	}
	return ours, amount, nil
}

func parseQuantity(text string, scale resource.Scale) (resources.Amount, error) {
	_, exponent, _ := strings.Cut(strings.ToLower(text), "e") // empty for "1E", "i" for "1Ei"
	if len(text) > maxQuantityText || len(strings.TrimPrefix(exponent, "i")) > maxExponentText {
		return 0, errors.New("has too many digits")
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return 0, errors.New(`is not one of Kubernetes, such as "500m", "2" or "64Gi"`)
	}
	if q.Sign() < 0 {
		return 0, errors.New("is below 0")
	}
	// ScaledValue wraps around, or gives 0, beyond int64.
	if q.Cmp(*resource.NewScaledQuantity(math.MaxInt64, scale)) > 0 {
		return 0, errors.New("is larger than can be counted")
	}
	return resources.Amount(q.ScaledValue(scale)), nil
}
