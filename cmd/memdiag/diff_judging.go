package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/canary"
	"github.com/memdiag/memdiag/snapshot"
)

// judging is a command's flags on how to judge a run.
type judging struct {
	diff.Options
	against string
}

// complete opens the run to compare with, if there is one.
func (j *judging) complete(env *environment) (diff.Options, error) {
	if j.against == "" {
		return j.Options, nil
	}
	good, err := env.openRun([]string{j.against})
	if err != nil {
		return j.Options, err
	}
	o := j.Options
	o.Against = good
	return o, nil
}

// warnIfGoodLeaks warns if the known-good run leaks itself: its leaks then count as wanted.
func (env *environment) warnIfGoodLeaks(o diff.Options) {
	good := o.Against
	if good == nil {
		return
	}
	o.Against = nil
	if r, err := env.analyze(good, o); err == nil && r.Leaks() > 0 {
		env.talk.say("--against %s: this run leaks too, and the same leaks are accepted. To check a fix, use memdiag verify", good.Path)
	}
}

// forRank are the options for a rank. If the known-good run has files of that rank, these are read.
func (env *environment) forRank(o diff.Options, rank int) (diff.Options, error) {
	good := o.Against
	if good == nil || !slices.Contains(good.Ranks, rank) {
		return o, nil
	}
	run, err := awaited(env, noNews, func() (*snapshot.Run, error) { return env.openRank(good.Path, rank) })
	if err == nil {
		o.Against = canary.Without(run)
	}
	return o, err
}

// judgingFlags adds the flags on how to judge a run.
func judgingFlags(cmd *cobra.Command) *judging {
	o := &judging{Options: diff.DefaultOptions()}
	flags := cmd.Flags()
	flags.Var(&horizonFlag{&o.Options}, "horizon", "a leak counts if it fills a thousandth of the device by this `STEP`, or in a run without steps by a time such as 720h")
	flags.Var((*rateFlag)(&o.MinRate), "min-rate", "the slowest leak that counts, such as 1KiB/step or 1KiB/second; in place of --horizon")
	flags.Var((*size)(&o.DeviceMemory), "device-memory", "memory of each GPU, such as 80GiB, for forecasts; PyTorch's snapshots lack it")
	flags.Var((*boundsFlag)(&o.Bounds), "bound", "`WHERE=SIZE`: WHERE may grow up to SIZE, such as 'replay.py:push=10000 blocks' or 'Agent.items=64MiB'; may be repeated")
	flags.StringVar(&o.against, "against", "", "a known-good `RUN`: growth that it has too is no leak, even if lines have moved")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if flags.Changed("horizon") && flags.Changed("min-rate") {
			return usagef(cmd, "--horizon and --min-rate exclude each other")
		}
		return nil
	}
	return o
}

// horizonFlag is a flag that takes a step or a time.
type horizonFlag struct{ *diff.Options }

func (f *horizonFlag) String() string { return "1000000 or 720h" }

// Type is the type of the value in help.
func (f *horizonFlag) Type() string { return "step" }

// Set parses a number of steps, or a duration.
func (f *horizonFlag) Set(text string) error {
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		f.Span = d
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return errors.New("want a step, 1 at least, or a time such as 720h")
	}
	f.Horizon = n
	return nil
}

// boundsFlag is a flag that declares a bound each time it is given.
type boundsFlag []snapshot.Bound

func (f *boundsFlag) String() string { return "" }

// Type is the type of the value in help.
func (f *boundsFlag) Type() string { return "bound" }

// Set parses one bound: WHERE=N blocks, or WHERE=SIZE.
func (f *boundsFlag) Set(text string) error {
	where, size, ok := strings.Cut(text, "=")
	where, size = strings.TrimSpace(where), strings.TrimSpace(size)
	if !ok || where == "" {
		return errors.New("want WHERE=SIZE, such as replay.py:push=10000 blocks")
	}
	b := snapshot.Bound{Where: where}
	if number, ok := strings.CutSuffix(strings.TrimSuffix(size, "s"), "block"); ok {
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if err != nil || n < 1 {
			return fmt.Errorf("%q is not a number of blocks", size)
		}
		b.Blocks = n
	} else {
		n, err := snapshot.ParseBytes(size)
		if err != nil {
			return err
		}
		if n < 1 {
			return errors.New("a bound is more than 0")
		}
		b.Bytes = n
	}
	*f = append(*f, b)
	return nil
}
