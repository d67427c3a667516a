package validation

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/paddock-scheduler/paddock/apis/config"
)

const (
	minReservationTimeout   = 100 * time.Millisecond
	maxReservationTimeout   = 24 * time.Hour
	minVictimGrace          = time.Second
	maxVictimGrace          = 24 * time.Hour
	maxPreemptionStartDelay = 24 * time.Hour
)

// ValidateNodeReservationArgs returns nil, or one error that lists every mistake in args.
func ValidateNodeReservationArgs(args *config.NodeReservationArgs) error {
	errs := between(field.NewPath("reservationTimeout"), args.ReservationTimeout,
		minReservationTimeout, maxReservationTimeout)
	errs = append(errs, between(field.NewPath("preemptionStartDelay"), &args.PreemptionStartDelay,
		0, maxPreemptionStartDelay)...)
	if grace := args.MaxVictimGrace; grace != nil {
		errs = append(errs, between(field.NewPath("maxVictimGrace"), grace, minVictimGrace, maxVictimGrace)...)
		errs = append(errs, wholeSeconds(field.NewPath("maxVictimGrace"), grace)...)
	}
	errs = append(errs, oneOf(field.NewPath("classOrder"), args.ClassOrder, config.ClassOrderSeed, config.ClassOrderYuniKorn)...)
	errs = append(errs, oneOf(field.NewPath("holdTaint"), args.HoldTaint,
		config.HoldTaintAuto, config.HoldTaintAlways, config.HoldTaintNever)...)
	errs = append(errs, validateVictimSelection(field.NewPath("victimSelection"), args.VictimSelection)...)
	if percent := args.SingleDeviationPercent; percent != nil && *percent < 0 {
		errs = append(errs, field.Invalid(field.NewPath("singleDeviationPercent"), *percent,
			"must be at least 0; leave the field out for no bound"))
	}
	if victims := args.MaxVictims; victims != nil && *victims < 1 {
		errs = append(errs, field.Invalid(field.NewPath("maxVictims"), *victims,
			"must be at least 1; leave the field out for no bound"))
	}
	errs = append(errs, names(field.NewPath("daemonSetNamespaces"), args.DaemonSetNamespaces, validation.IsDNS1123Label, "")...)
	return errs.ToAggregate()
}

func validateVictimSelection(path *field.Path, selections []config.VictimSelection) field.ErrorList {
	if len(selections) == 0 {
		return field.ErrorList{field.Required(path, "name at least one selection, or leave the field out for [multiple]")}
	}
	var errs field.ErrorList
	for i, selection := range selections {
		unknown := oneOf(path.Index(i), selection, config.VictimSelectionSingle, config.VictimSelectionMultiple)
		errs = append(errs, unknown...)
		if len(unknown) == 0 && slices.Contains(selections[:i], selection) {
			errs = append(errs, field.Duplicate(path.Index(i), selection))
		}
	}
	return errs
}
