package validation

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/paddock-scheduler/paddock/apis/config"
)

const (
	minRetryInterval = 100 * time.Millisecond
	maxRetryInterval = 24 * time.Hour
	minRound         = 10 * time.Millisecond
	maxRound         = time.Hour
)

// ValidateQueuePreemptionArgs returns nil, or one error that lists every mistake in args.
func ValidateQueuePreemptionArgs(args *config.QueuePreemptionArgs) error {
	errs := between(field.NewPath("retryInterval"), args.RetryInterval, minRetryInterval, maxRetryInterval)
	errs = append(errs, between(field.NewPath("round"), args.Round, minRound, maxRound)...)
	if args.MaxVictimsPerRound < 0 {
		errs = append(errs, field.Invalid(field.NewPath("maxVictimsPerRound"), args.MaxVictimsPerRound,
			"must be at least 0, where 0 means no bound"))
	}
	errs = append(errs, oneOf(field.NewPath("podOptOut"), args.PodOptOut, config.PodOptOutHonor, config.PodOptOutIgnore)...)
	return errs.ToAggregate()
}
