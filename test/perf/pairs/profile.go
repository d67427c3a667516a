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

// profile runs both sides and reports our share of the CPU time of the scheduling
// goroutine, of the time that goroutines waited for locks, and of the time that the
// scheduling goroutine waited for anything.
func (o options) profile(ctx context.Context, c benchmark) ([]string, error) {
	var shares []string
	for i := range o.profiles {
		var pair pairOf
		for _, path := range []string{c.base, c.ours} {
			side := path[strings.LastIndex(path, "/")+1:]
			label := fmt.Sprintf("%s-%s-profile-%d", c.name, side, i)
			p := profiles{
				binary: o.binary,
				cpu:    filepath.Join(o.dir, label+".prof"),
				mutex:  filepath.Join(o.dir, label+".mutex.prof"),
				block:  filepath.Join(o.dir, label+".block.prof"),
			}
			m, err := o.measure(ctx, path, label,
				"-test.mutexprofile="+p.mutex, "-test.mutexprofilefraction=10",
				"-test.blockprofile="+p.block, "-test.blockprofilerate=10000")
			if err != nil {
				return nil, err
			}
			if path == c.base {
				pair.base = m
			} else {
				pair.ours = m
			}
			share, err := p.ours(ctx)
			if err != nil {
				return nil, err
			}
			shares = append(shares, c.name+": "+side+": "+share)
		}
		if err := pair.doubt(); err != nil {
			return nil, err
		}
	}
	return shares, nil
}

// Functions that select stacks: a cycle of the scheduling goroutine, the wait for the
// next pod within it, and our functions.
const (
	cycle = `scheduler\.\(\*Scheduler\)\.ScheduleOne$`
	idle  = `sync\.\(\*Cond\)\.Wait$`
	ours  = `paddock-scheduler/paddock/pkg`
)

// total is pprof's sum of the stacks that it shows; a zero has no unit.
var total = regexp.MustCompile(`Showing nodes accounting for (?:([\d.]+)s|0),`)

// sampled returns the seconds of a profile in the stacks that the arguments select, 0 if
// they select none.
func sampled(ctx context.Context, binary, profile string, choose ...string) (float64, error) {
	args := append([]string{"tool", "pprof", "-top", "-unit=s", "-nodefraction=0", "-edgefraction=0"}, choose...)
	out, err := exec.CommandContext(ctx, "go", append(args, binary, profile)...).Output()
	if err != nil {
		return 0, fmt.Errorf("read profile %s: %w", profile, err)
	}
	seconds, err := accounted(out)
	if err != nil {
		return 0, fmt.Errorf("read profile %s: %w", profile, err)
	}
	return seconds, nil
}

// accounted returns the seconds that an output of pprof covers.
func accounted(out []byte) (float64, error) {
	found := total.FindSubmatch(out)
	if found == nil {
		return 0, fmt.Errorf("pprof does not say how many seconds it shows: %q", out[:min(len(out), 500)])
	}
	if len(found[1]) == 0 {
		return 0, nil
	}
	return strconv.ParseFloat(string(found[1]), 64)
}

// profiles are the files of one run: CPU time, waiting for locks by holder, and all
// waiting by waiter. The last has every wait of 10 us and more, and shorter ones by
// chance, weighted.
type profiles struct{ binary, cpu, mutex, block string }

// ours reports the share of the scheduling goroutine's CPU time, and of all other CPU
// time, with one of our functions on the stack; how long goroutines waited for a lock, in
// all and where one of our functions held it; and how long the scheduling goroutine
// waited within a cycle, in all and below one of our functions.
func (p profiles) ours(ctx context.Context) (string, error) {
	inCycle, err1 := sampled(ctx, p.binary, p.cpu, "-show_from="+cycle)
	oursInCycle, err2 := sampled(ctx, p.binary, p.cpu, "-show_from="+cycle, "-focus="+ours)
	oursAnywhere, err3 := sampled(ctx, p.binary, p.cpu, "-focus="+ours)
	waited, err4 := sampled(ctx, p.binary, p.mutex, "-sample_index=delay")
	waitedForOurs, err5 := sampled(ctx, p.binary, p.mutex, "-sample_index=delay", "-focus="+ours)
	stood, err6 := sampled(ctx, p.binary, p.block, "-sample_index=delay", "-show_from="+cycle, "-ignore="+idle)
	stoodInOurs, err7 := sampled(ctx, p.binary, p.block, "-sample_index=delay", "-show_from="+cycle, "-ignore="+idle, "-focus="+ours)
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7); err != nil {
		return "", err
	}
	return fmt.Sprintf("scheduling goroutine: %.2f s CPU, ours %.2f s (%.1f %%); ours in all goroutines: %.2f s; "+
		"waits for locks: %.3f s, for ours %.3f s; scheduling goroutine stood still in cycles: %.3f s, in ours %.3f s",
		inCycle, oursInCycle, 100*oursInCycle/max(inCycle, 0.001), oursAnywhere, waited, waitedForOurs, stood, stoodInOurs), nil
}
