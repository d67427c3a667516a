package validation

import (
	"net"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/paddock-scheduler/paddock/apis/config"
)

const (
	maxMaxWindow = 1 << 16

	maxMetricsQueues = 100_000
	minSlotLease     = 100 * time.Millisecond
	maxSlotLease     = time.Hour
)

// ValidateQueueSortArgs returns nil, or one error that lists every mistake in args.
func ValidateQueueSortArgs(args *config.QueueSortArgs) error {
	errs := validateConfigSource(args)
	errs = append(errs, validateManagedProfiles(field.NewPath("managedProfiles"), args.ManagedProfiles)...)
	errs = append(errs, validateWindow(args)...)
	errs = append(errs, between(field.NewPath("slotLease"), args.SlotLease, minSlotLease, maxSlotLease)...)
	errs = append(errs, oneOf(field.NewPath("daemonSetOwner"), args.DaemonSetOwner,
		config.DaemonSetOwnerVerified, config.DaemonSetOwnerClaimed)...)
	errs = append(errs, validateBackoff(args)...)
	errs = append(errs, validateAddress(field.NewPath("restAddress"), *args.RESTAddress)...)
	errs = append(errs, validateRESTAccess(args)...)
	return errs.ToAggregate()
}

func validateConfigSource(args *config.QueueSortArgs) field.ErrorList {
	var errs field.ErrorList
	namespace := field.NewPath("configNamespace")
	if args.ConfigNamespace == "" {
		return errs
	}
	for _, msg := range validation.IsDNS1123Label(args.ConfigNamespace) {
		errs = append(errs, field.Invalid(namespace, args.ConfigNamespace, msg))
	}
	if args.ConfigFile != "" {
		errs = append(errs, field.Forbidden(namespace,
			"configFile is set, so no ConfigMap is read: leave out one of the two"))
	}
	return errs
}

func validateManagedProfiles(path *field.Path, profiles []string) field.ErrorList {
	if len(profiles) == 0 {
		return field.ErrorList{field.Required(path, "name at least one profile, or leave the field out for [yunikorn]")}
	}
	return names(path, profiles, func(name string) []string {
		if name == "" {
			return []string{"a profile has a schedulerName"}
		}
		return nil
	}, "")
}

func validateWindow(args *config.QueueSortArgs) field.ErrorList {
	var errs field.ErrorList
	if *args.Window < 1 || *args.Window > maxMaxWindow {
		errs = append(errs, field.Invalid(field.NewPath("window"), *args.Window,
			"must be between 1 and "+strconv.Itoa(maxMaxWindow)))
	}
	if most := max(maxMaxWindow, *args.Window); *args.MaxWindow < *args.Window || *args.MaxWindow > most {
		errs = append(errs, field.Invalid(field.NewPath("maxWindow"), *args.MaxWindow,
			"must be between window and "+strconv.Itoa(maxMaxWindow)))
	}
	if *args.MetricsQueues < 0 || *args.MetricsQueues > maxMetricsQueues {
		errs = append(errs, field.Invalid(field.NewPath("metricsQueues"), *args.MetricsQueues,
			"must be between 0 and "+strconv.Itoa(maxMetricsQueues)))
	}
	for _, bound := range []struct {
		name string
		n    int32
	}{{"maxDynamicQueues", *args.MaxDynamicQueues}, {"maxDynamicQueuesPerNamespace", *args.MaxDynamicQueuesPerNamespace}} {
		if bound.n < 0 {
			errs = append(errs, field.Invalid(field.NewPath(bound.name), bound.n, "must be at least 0, where 0 is no bound"))
		}
	}
	return errs
}

// validateBackoff asks for whole seconds because the values must equal two
// fields of the KubeSchedulerConfiguration that can express nothing else.
func validateBackoff(args *config.QueueSortArgs) field.ErrorList {
	initial, longest := args.PodInitialBackoff, args.PodMaxBackoff
	errs := wholeSeconds(field.NewPath("podInitialBackoff"), initial)
	errs = append(errs, wholeSeconds(field.NewPath("podMaxBackoff"), longest)...)
	if longest.Duration < initial.Duration {
		errs = append(errs, field.Invalid(field.NewPath("podMaxBackoff"), longest.Duration.String(),
			"must be at least podInitialBackoff"))
	}
	return errs
}

// validateRESTAccess checks under which names and with which files the interface is served.
func validateRESTAccess(args *config.QueueSortArgs) field.ErrorList {
	errs := names(field.NewPath("restHosts"), args.RESTHosts, validation.IsDNS1123Subdomain, "; write no scheme, port or *")
	cert, key := field.NewPath("restTLSCertFile"), field.NewPath("restTLSKeyFile")
	switch {
	case args.RESTTLSCertFile == "" && args.RESTTLSKeyFile != "":
		errs = append(errs, field.Required(cert, "restTLSKeyFile is set: give both or none"))
	case args.RESTTLSCertFile != "" && args.RESTTLSKeyFile == "":
		errs = append(errs, field.Required(key, "restTLSCertFile is set: give both or none"))
	}
	return append(errs, oneOf(field.NewPath("restAuthorization"), args.RESTAuthorization,
		config.RESTAuthorizationNone, config.RESTAuthorizationDelegated)...)
}

func validateAddress(path *field.Path, address string) field.ErrorList {
	if address == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return field.ErrorList{field.Invalid(path, address, `must be host:port, or "" to turn the interface off`)}
	}
	var errs field.ErrorList
	if host != "" && net.ParseIP(host) == nil && len(validation.IsDNS1123Subdomain(host)) > 0 {
		errs = append(errs, field.Invalid(path, address, "the host must be an IP address, a host name or empty"))
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(number, 10) != port {
		errs = append(errs, field.Invalid(path, address, "the port must be a number from 0 to 65535"))
	}
	return errs
}
