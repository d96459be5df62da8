package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/canary"
	"github.com/memdiag/memdiag/snapshot"
)

// judging is what a command's flags say of how a run is judged.
type judging struct {
	diff.Options
	against string
}

// complete opens the run to hold the other against, if there is one.
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

// forRank are the options for a rank: a known-good run that has files of it is read for it.
func (env *environment) forRank(o diff.Options, rank int) (diff.Options, error) {
	good := o.Against
	if good == nil || !slices.Contains(good.Ranks, rank) {
		return o, nil
	}
	run, err := awaited(env, noNews, func() (*snapshot.Run, error) { return env.telling().OpenRank(good.Path, rank) })
	if err == nil {
		o.Against = canary.Without(run)
	}
	return o, err
}

// judgingFlags lets a command say how a run is judged.
func judgingFlags(cmd *cobra.Command) *judging {
	o := &judging{Options: diff.DefaultOptions()}
	flags := cmd.Flags()
	flags.Int64Var(&o.Horizon, "horizon", o.Horizon, "the `STEP` until which growth matters: what takes under a thousandth of its device by then is no leak")
	flags.Var((*sizeFlag)(&o.MinRate), "min-rate", "in place of --horizon, the least growth a step that is a leak, such as 1KiB")
	flags.Var((*boundsFlag)(&o.Bounds), "bound", "declare what may gather up to a size, `WHERE=SIZE`: 'replay.py:push=10000 blocks' or 'Agent.items=64MiB'; may be repeated")
	flags.StringVar(&o.against, "against", "", "a `RUN` that is known to be good: what grows there as fast is no leak, though lines have moved")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if o.Horizon < 1 {
			return usagef(cmd, "--horizon is at least 1")
		}
		if flags.Changed("horizon") && flags.Changed("min-rate") {
			return usagef(cmd, "--horizon and --min-rate exclude each other: both say what is too slow for a leak")
		}
		return nil
	}
	return o
}

// boundsFlag is a flag that declares a bound each time it is given.
type boundsFlag []snapshot.Bound

func (f *boundsFlag) String() string { return "" }

// Type is what help shows for the value.
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
			return errors.New("a bound is more than nothing")
		}
		b.Bytes = n
	}
	*f = append(*f, b)
	return nil
}
