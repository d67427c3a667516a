package main

import (
	"fmt"
	"regexp"
	"strings"
)

// benchmark is a case and the places of its two sides in package perf.
type benchmark struct {
	name       string
	base, ours string
	large      bool
}

// benchmarks are all cases. Upstream's are compared twice: with its pods beside our
// profile in one process, and with its pods in a queue where that makes sense; otherwise
// beside our profile with an additional plugin that preempts.
func benchmarks() []benchmark {
	var list []benchmark
	for _, name := range []string{"Queues", "QueuesCreated", "HeldBack", "Reclaim", "RollOut", "Readers"} {
		list = append(list, benchmark{name: name, base: "BenchmarkOurs/" + name + "/base", ours: "BenchmarkOurs/" + name + "/ours"})
	}
	upstream := func(name, size string, sides ...string) {
		for _, side := range sides {
			path := "BenchmarkUpstream/" + name + "/" + size + "/"
			list = append(list, benchmark{
				name: name + "-" + size + "-" + side, base: path + "base", ours: path + side, large: size == "large",
			})
		}
	}
	for _, name := range []string{
		"SchedulingBasic", "SchedulingWithMixedChurn", "SchedulingDaemonset", "Unschedulable", "TopologySpreading", "SchedulingNodeAffinity",
	} {
		upstream(name, "small", "beside", "managed")
	}
	upstream("PreemptionBasic", "small", "beside", "asks")
	upstream("PreemptionAsync", "small", "beside", "asks")
	upstream("SchedulingBasic", "large", "beside", "managed")
	upstream("SchedulingDaemonset", "large", "beside", "managed")
	upstream("PreemptionAsync", "large", "beside", "asks")
	return list
}

// choose returns the cases that match; the large ones only on request.
func choose(pattern string, large bool) ([]benchmark, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("-cases: %w", err)
	}
	var chosen []benchmark
	for _, b := range benchmarks() {
		if re.MatchString(b.name) && (large || !b.large) {
			chosen = append(chosen, b)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("-cases %q: none of %s", pattern, caseNames())
	}
	return chosen, nil
}

func caseNames() string {
	var names []string
	for _, b := range benchmarks() {
		names = append(names, b.name)
	}
	return strings.Join(names, " ")
}
