package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// profile runs both sides and says our part of what the scheduling goroutine needed,
// and of the time that goroutines waited for locks.
func (o options) profile(ctx context.Context, c benchmark) ([]string, error) {
	var shares []string
	for i := range o.profiles {
		for _, path := range []string{c.base, c.ours} {
			side := path[strings.LastIndex(path, "/")+1:]
			label := fmt.Sprintf("%s-%s-profile-%d", c.name, side, i)
			locks := filepath.Join(o.dir, label+".mutex.prof")
			if _, err := o.measure(ctx, path, label, "-test.mutexprofile="+locks, "-test.mutexprofilefraction=10"); err != nil {
				return nil, err
			}
			share, err := shareOfOurs(ctx, o.binary, filepath.Join(o.dir, label+".prof"), locks)
			if err != nil {
				return nil, err
			}
			shares = append(shares, c.name+": "+side+": "+share)
		}
	}
	return shares, nil
}

// Functions by which stacks are chosen: a cycle of the scheduling goroutine, and ours.
const (
	cycle = `scheduler\.\(\*Scheduler\)\.ScheduleOne$`
	ours  = `paddock-scheduler/paddock/pkg`
)

// total is what pprof says that the stacks it shows add up to.
var total = regexp.MustCompile(`Showing nodes accounting for ([\d.]+)s`)

// sampled are the seconds of a profile whose stacks the arguments choose.
func sampled(ctx context.Context, binary, profile string, choose ...string) (float64, error) {
	args := append([]string{"tool", "pprof", "-top", "-unit=s", "-nodefraction=0", "-edgefraction=0"}, choose...)
	out, err := exec.CommandContext(ctx, "go", append(args, binary, profile)...).Output()
	if err != nil {
		return 0, fmt.Errorf("read profile %s: %w", profile, err)
	}
	found := total.FindSubmatch(out)
	if found == nil {
		return 0, nil // no sample
	}
	return strconv.ParseFloat(string(found[1]), 64)
}

// shareOfOurs says what part of the CPU time of the scheduling goroutine has a
// function of ours on its stack, and of everything else; and how long goroutines
// waited for a lock, in all and where one of ours held it.
func shareOfOurs(ctx context.Context, binary, profile, locks string) (string, error) {
	inCycle, err1 := sampled(ctx, binary, profile, "-show_from="+cycle)
	oursInCycle, err2 := sampled(ctx, binary, profile, "-show_from="+cycle, "-focus="+ours)
	oursAnywhere, err3 := sampled(ctx, binary, profile, "-focus="+ours)
	waited, err4 := sampled(ctx, binary, locks, "-sample_index=delay")
	waitedForOurs, err5 := sampled(ctx, binary, locks, "-sample_index=delay", "-focus="+ours)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return "", err
	}
	return fmt.Sprintf("scheduling goroutine: %.2f s CPU, ours %.2f s (%.1f %%); ours in all goroutines: %.2f s; waits for locks: %.3f s, for ours %.3f s",
		inCycle, oursInCycle, 100*oursInCycle/max(inCycle, 0.001), oursAnywhere, waited, waitedForOurs), nil
}
