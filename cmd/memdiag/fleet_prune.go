package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/fleet"
	"github.com/memdiag/memdiag/fleet/clickhouse"
	"github.com/memdiag/memdiag/snapshot"
)

func newFleetPruneCommand(f *fleetFolder) *cobra.Command {
	var keep age
	var yes bool
	var to string
	cmd := &cobra.Command{
		Use:   "prune --keep AGE",
		Short: "list runs older than an age, and with --yes delete them",
		Long: `Lists the days that are older, with their runs and sizes. Nothing is deleted without
--yes. A run's age counts from its beginning.

With --to it does so on ClickHouse servers, by months: a month is older if its last
day is. Name all servers of a cluster. Prune the folder first, or the next push copies
its old runs again.`,
		Example: `  memdiag fleet prune --keep 90d
  memdiag fleet prune --keep 90d --yes
  memdiag fleet prune --keep 365d --to clickhouse://db.example.com/memdiag`,
		Args: takes(0, 0, "arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if keep == 0 {
				return usagef(cmd, "--keep says what stays, such as 90d")
			}
			a, err := f.server(to)
			if err != nil {
				return fleetError(err)
			}
			var p *pruning
			if a != nil {
				p, err = f.olderMonths(a, time.Duration(keep))
			} else {
				p, err = f.olderDays(time.Duration(keep))
			}
			if err != nil {
				return err
			}
			return f.prune(p, yes)
		},
	}
	flags := cmd.Flags()
	flags.Var(&keep, "keep", "what is younger stays, such as 90d")
	flags.BoolVar(&yes, "yes", false, "delete what is older")
	toFlag(cmd, &to)
	return cmd
}

// pruning is the part of a fleet that is older than an age.
type pruning struct {
	periods    []period
	runs       int // runs of the whole fleet
	bytes      int64
	deleteThem func() error
}

// period is a day or a month that is older.
type period struct {
	name  string
	runs  int
	bytes int64
}

func (f *fleetFolder) olderDays(keep time.Duration) (*pruning, error) {
	s, err := awaited(f.env, noNews, func() (*fleet.Store, error) { return fleet.OpenStore(f.folder()) })
	if err != nil {
		return nil, fleetError(err)
	}
	old := s.Old(f.env.now(), keep)
	p := &pruning{runs: len(s.Runs()), bytes: s.Bytes(), deleteThem: func() error { return f.cannotAdd(s.Remove(old)) }}
	for _, part := range old {
		p.periods = append(p.periods, period{part.Day, len(part.Runs), part.Bytes})
	}
	return p, nil
}

func (f *fleetFolder) olderMonths(a *clickhouse.Address, keep time.Duration) (*pruning, error) {
	months, err := awaited(f.env, noNews, func() ([]fleet.Month, error) { return fleet.Months(f.ctx, a) })
	if err != nil {
		return nil, fleetError(err)
	}
	p := new(pruning)
	var old []fleet.Month
	for _, m := range months {
		p.runs, p.bytes = p.runs+m.Runs, p.bytes+m.Bytes
		if m.Before(f.env.now(), keep) {
			old = append(old, m)
			p.periods = append(p.periods, period{m.String(), m.Runs, m.Bytes})
		}
	}
	p.deleteThem = func() error {
		_, err := awaited(f.env, noNews, func() (bool, error) { return true, fleet.DropMonths(f.ctx, a, old) })
		return fleetError(err)
	}
	return p, nil
}

// prune lists older runs, and deletes them if yes.
func (f *fleetFolder) prune(p *pruning, yes bool) error {
	runs, size := 0, int64(0)
	for _, old := range p.periods {
		runs, size = runs+old.runs, size+old.bytes
	}
	err := f.env.result("", false, func(w io.Writer) error {
		for _, old := range p.periods {
			fmt.Fprintf(w, "%s  %s  %s\n", old.name, counted(old.runs, "run"), snapshot.Bytes(old.bytes))
		}
		_, err := fmt.Fprintf(w, "%d of %s, %s of %s\n", runs, counted(p.runs, "run"), snapshot.Bytes(size), snapshot.Bytes(p.bytes))
		return err
	})
	if err != nil || len(p.periods) == 0 {
		return err
	}
	if !yes {
		f.env.talk.say("nothing was deleted; --yes deletes them")
		return nil
	}
	if err := p.deleteThem(); err != nil {
		return err
	}
	f.env.talk.say("deleted %s, %s", counted(runs, "run"), snapshot.Bytes(size))
	return nil
}
