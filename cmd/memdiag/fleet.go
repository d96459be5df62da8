package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/fleet"
	"github.com/memdiag/memdiag/fleet/clickhouse"
	"github.com/memdiag/memdiag/fleet/parquet"
)

// fleetFolder is the flag --fleet of all commands that query a fleet, and --from of those that can query a server.
type fleetFolder struct {
	env  *environment
	dir  string
	from string
	ctx  context.Context // of the running command
}

func newFleetCommand(env *environment) *cobra.Command {
	f := &fleetFolder{env: env}
	cmd := &cobra.Command{
		Use:     "fleet COMMAND",
		GroupID: groupFind,
		Short:   "many runs: which leaks there are, since when, on which ranks, at what cost",
		Long: `A fleet is a folder of Parquet files with the leaks of many runs. It needs no
server; DuckDB and ClickHouse read the same files. A run that is added again
replaces its earlier results. If one machine is too small, init and push copy a
fleet to a ClickHouse server or cluster; --fleet takes its address.

The tables: ` + docsAddress + `fleet-tables.md
Queries: ` + docsAddress + `queries.md`,
		Example: `  memdiag fleet add my-run --fleet /shared/fleet --commit $(git rev-parse HEAD)
  memdiag fleet leaks --fleet /shared/fleet`,
	}
	cmd.PersistentFlags().StringVar(&f.dir, "fleet", "", "the fleet's `FOLDER` or clickhouse:// address; by default $MEMDIAG_FLEET, else ./fleet")
	cmd.AddCommand(
		newFleetAddCommand(f), newFleetLeaksCommand(f), newFleetRunsCommand(f), newFleetRanksCommand(f), newFleetShowCommand(f), newFleetCompareCommand(f), newFleetReportCommand(f),
		newFleetSQLCommand(f), newFleetCompactCommand(f), newFleetPruneCommand(f), newFleetInitCommand(f), newFleetPushCommand(f),
	)
	for _, command := range cmd.Commands() {
		if command.Flags().Lookup("from") != nil {
			command.MarkFlagsMutuallyExclusive("fleet", "from")
		}
		once := command.RunE
		command.RunE = func(cmd *cobra.Command, args []string) error {
			f.ctx = cmd.Context()
			return fleet.Again(func() error { return once(cmd, args) })
		}
	}
	return cmd
}

// folder is the fleet's folder, unless the fleet is on a server.
func (f *fleetFolder) folder() string {
	return cmp.Or(f.dir, f.env.getenv("MEMDIAG_FLEET"), "fleet")
}

// checkFleet returns an error for a name that cannot be a fleet's, before work is done.
func (env *environment) checkFleet(dir string) error {
	f := &fleetFolder{env: env, dir: dir}
	a, err := f.server("")
	if a == nil && err == nil {
		err = fleet.CheckName(f.folder())
	}
	return fleetError(err)
}

// next says which command to run on the same fleet.
func (f *fleetFolder) next(command string, args ...string) {
	switch {
	case f.from != "":
		command += " --from " + shellQuote(f.place())
	case f.dir != "":
		command += " --fleet " + f.shellPlace()
	}
	f.env.talk.next("fleet "+command, args...)
}

func (f *fleetFolder) open() (*fleet.Store, error) {
	s, err := awaited(f.env, noNews, func() (*fleet.Store, error) {
		a, err := f.server(f.from)
		switch {
		case err != nil:
			return nil, err
		case a != nil:
			return fleet.OpenServer(f.ctx, a)
		}
		return fleet.OpenStore(f.folder())
	})
	return s, fleetError(err)
}

// fleetError is bad input if a fleet's files are at fault.
func fleetError(err error) error {
	if err == nil {
		return nil
	}
	if none, ok := errors.AsType[*fleet.NoFleetError](err); ok {
		return badInput(none)
	}
	if url, ok := errors.AsType[*fleet.URLError](err); ok {
		return &exitError{exitUsage, url}
	}
	if none, ok := errors.AsType[*fleet.NoServerFleetError](err); ok {
		return badInput(none)
	}
	if address, ok := errors.AsType[*clickhouse.AddressError](err); ok {
		return &exitError{exitUsage, address}
	}
	if other, ok := errors.AsType[*fleet.VersionError](err); ok {
		return badInput(other)
	}
	if broken, ok := errors.AsType[*parquet.FormatError](err); ok {
		return badInput(broken)
	}
	return err
}

// answer writes the answer to a query, as text or as JSON with a version.
func (f *fleetFolder) answer(format choice, value map[string]any, text func(io.Writer) error) error {
	if format.value != "json" {
		return f.env.result("", false, text)
	}
	value["schema_version"] = fleet.Version
	return f.env.result("", false, func(w io.Writer) error {
		out := json.NewEncoder(w)
		out.SetIndent("", "  ")
		return out.Encode(value)
	})
}

func formatFlag(cmd *cobra.Command, format *choice) {
	*format = textOrJSON()
	cmd.Flags().Var(format, "format", "format on standard output: text or json")
	completeWords(cmd, "format", format.of)
}

func newFleetLeaksCommand(f *fleetFolder) *cobra.Command {
	var format choice
	var top int
	var commit string
	cmd := &cobra.Command{
		Use:   "leaks",
		Short: "the leaks of all runs, by fingerprint, with their cost",
		Long: `Lists leaks by the gate's fingerprint, which survives moved lines: in how many runs
and ranks, when and at which commit first seen, how fast a rank leaks by second, what
leaked in all, and what it cost. The cost is what was held over time, and the GPU
hours of runs that ran out of memory while this was their largest leak.`,
		Example: `  memdiag fleet leaks
  memdiag fleet leaks --commit 4f2a91c --format json`,
		Args: takes(0, 0, "arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := atLeastOne(cmd, top); err != nil {
				return err
			}
			s, err := f.open()
			if err != nil {
				return err
			}
			wanted := func(r *fleet.Run) bool { return strings.HasPrefix(r.Commit, commit) }
			leaks, err := awaited(f.env, noNews, func() ([]fleet.Leak, error) {
				leaks, err := s.Leaks(wanted)
				if err == nil {
					err = s.Name(leaks[:min(top, len(leaks))])
				}
				return leaks, err
			})
			if err != nil {
				return fleetError(err)
			}
			runs := 0
			for _, r := range s.Runs() {
				if wanted(&r) {
					runs++
				}
			}
			err = f.answer(format, map[string]any{"runs": runs, "leaks": leaks[:min(top, len(leaks))], "leaks_in_all": len(leaks)}, func(w io.Writer) error {
				return fleet.WriteLeaks(w, leaks, runs, top)
			})
			if err == nil && len(leaks) > 0 {
				f.next("show", leaks[0].Fingerprint)
			}
			return err
		},
	}
	cmd.Flags().IntVar(&top, "top", 20, "how many are shown")
	cmd.Flags().StringVar(&commit, "commit", "", "of runs of this `COMMIT` alone, or the beginning of its name")
	formatFlag(cmd, &format)
	f.fromFlag(cmd)
	return cmd
}

func newFleetRunsCommand(f *fleetFolder) *cobra.Command {
	var format choice
	var next bool
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "all runs, newest first; or which run out of memory next",
		Example: `  memdiag fleet runs
  memdiag fleet runs --next`,
		Args: takes(0, 0, "arguments"),
		RunE: func(*cobra.Command, []string) error {
			s, err := f.open()
			if err != nil {
				return err
			}
			if next {
				dying, err := s.Next()
				if err != nil {
					return fleetError(err)
				}
				return f.answer(format, map[string]any{"next": dying}, func(w io.Writer) error { return fleet.WriteNext(w, dying) })
			}
			runs := s.Runs()
			return f.answer(format, map[string]any{"runs": runs}, func(w io.Writer) error { return fleet.WriteRuns(w, runs) })
		},
	}
	cmd.Flags().BoolVar(&next, "next", false, "runs that have not ended and will run out of memory, the soonest first")
	formatFlag(cmd, &format)
	f.fromFlag(cmd)
	return cmd
}

func newFleetRanksCommand(f *fleetFolder) *cobra.Command {
	var format choice
	cmd := &cobra.Command{
		Use:   "ranks RUN",
		Short: "ranks whose memory grows unlike that of their peers, and what they share",
		Long: `Compares how memory grows on each rank with the median of all, in units of the
median absolute deviation, and names the smallest group that explains the unlike
ones: one rank, a data-parallel replica, a host, a pipeline stage, or all. Stages and
replicas are known if the run was added with --mesh.`,
		Example: `  memdiag fleet ranks my-run
  memdiag fleet ranks 3f2a --format json`,
		Args: takes(1, 1, "run"),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := f.open()
			if err != nil {
				return err
			}
			run, err := f.run(s, args[0])
			if err != nil {
				return err
			}
			ranks, err := s.Ranks(run.ID)
			if err != nil {
				return fleetError(err)
			}
			groups := fleet.Unlike(ranks)
			return f.answer(format, map[string]any{"run": run, "unlike": append([]fleet.Group{}, groups...), "ranks": ranks}, func(w io.Writer) error {
				return fleet.WriteUnlike(w, run, ranks, groups)
			})
		},
	}
	formatFlag(cmd, &format)
	f.fromFlag(cmd)
	return cmd
}

// run is the newest run that a word names.
func (f *fleetFolder) run(s *fleet.Store, word string) (fleet.Run, error) {
	found := s.Find(word)
	if len(found) == 0 {
		return fleet.Run{}, badInput(withHint(fmt.Errorf("%s: no run of that name or id in %s", word, f.place()), "memdiag fleet runs lists them"))
	}
	if len(found) > 1 {
		f.env.talk.say("%d runs are called %s; this is the newest, %s", len(found), word, found[0].ID)
	}
	return found[0], nil
}

func newFleetShowCommand(f *fleetFolder) *cobra.Command {
	var format choice
	cmd := &cobra.Command{
		Use:   "show FINGERPRINT|RUN",
		Short: "one leak over all runs, with its stack and holders; or one run's leaks",
		Example: `  memdiag fleet show s1-c962b34024bb34f1
  memdiag fleet show my-run`,
		Args: takes(1, 1, "fingerprint or run"),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := f.open()
			if err != nil {
				return err
			}
			if strings.HasPrefix(args[0], "s1-") {
				d, err := s.Detail(args[0])
				if err != nil {
					return fleetError(err)
				}
				if d == nil {
					return badInput(withHint(fmt.Errorf("%s: no run leaks there", args[0]), "memdiag fleet leaks lists leaks with their fingerprints"))
				}
				return f.answer(format, map[string]any{"leak": d}, func(w io.Writer) error { return fleet.WriteDetail(w, d) })
			}
			run, err := f.run(s, args[0])
			if err != nil {
				return err
			}
			leaks, err := s.Leaks(func(r *fleet.Run) bool { return r.ID == run.ID })
			if err == nil {
				err = s.Name(leaks)
			}
			if err != nil {
				return fleetError(err)
			}
			return f.answer(format, map[string]any{"run": run, "leaks": leaks}, func(w io.Writer) error {
				if err := fleet.WriteRuns(w, []fleet.Run{run}); err != nil {
					return err
				}
				return fleet.WriteLeaks(w, leaks, 1, 20)
			})
		},
	}
	formatFlag(cmd, &format)
	f.fromFlag(cmd)
	return cmd
}

func newFleetCompareCommand(f *fleetFolder) *cobra.Command {
	var format choice
	cmd := &cobra.Command{
		Use:   "compare COMMIT COMMIT",
		Short: "what began to leak between two commits, what got worse, and what a fix saved",
		Long: `Compares the runs of two commits: leaks that are new, worse, the same, better or
fixed, by the mean rate of a rank. A leak is fixed if a run of the second commit would
have shown it; else it is not judged, and the reason is said. Saved is what the runs
of the second commit would have leaked in addition at the rate of the first.`,
		Example: `  memdiag fleet compare 4f2a91c 77ab02e
  memdiag fleet compare v1.2 v1.3 --format json`,
		Args: takes(2, 2, "commits"),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := f.open()
			if err != nil {
				return err
			}
			for i, word := range args {
				if args[i], err = f.commit(s, word); err != nil {
					return err
				}
			}
			changes, before, after, err := s.Compare(args[0], args[1])
			if err != nil {
				return fleetError(err)
			}
			return f.answer(format, map[string]any{"before": args[0], "after": args[1], "runs_before": before, "runs_after": after, "changes": append([]fleet.Change{}, changes...)}, func(w io.Writer) error {
				return fleet.WriteChanges(w, changes, args[0], args[1], before, after)
			})
		},
	}
	formatFlag(cmd, &format)
	f.fromFlag(cmd)
	return cmd
}

// commit is the commit whose hash begins with a word.
func (f *fleetFolder) commit(s *fleet.Store, word string) (string, error) {
	found := ""
	for _, r := range s.Runs() {
		switch {
		case r.Commit == word:
			return word, nil
		case word == "" || !strings.HasPrefix(r.Commit, word) || r.Commit == found:
		case found != "":
			return "", badInput(fmt.Errorf("%s is ambiguous: it matches commits %s and %s", word, found, r.Commit))
		default:
			found = r.Commit
		}
	}
	if found == "" {
		return "", badInput(withHint(fmt.Errorf("%s: no run of this commit in %s", word, f.place()), "add the run with --commit COMMIT"))
	}
	return found, nil
}
