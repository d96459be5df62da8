package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/canary"
	"github.com/memdiag/memdiag/fleet"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/files"
)

// fleetAdding is the options for runs that are added.
type fleetAdding struct {
	commit          string
	mesh            meshFlag
	paths, commands choice
}

func newFleetAddCommand(f *fleetFolder) *cobra.Command {
	var a fleetAdding
	privacy := []string{string(fleet.Keep), string(fleet.Hash), string(fleet.Omit)}
	a.paths, a.commands = choice{"keep", privacy}, choice{"keep", privacy}
	cmd := &cobra.Command{
		Use:   "add RUN …",
		Short: "judge runs and add what was found to the fleet",
		Long: `Judges each rank of runs, and writes the result to the fleet's tables. A run that is
there already is replaced, so that a run can be added while it goes on, and from CI
again. Several processes may add at once. The folder is made if it is missing; on a
server memdiag fleet init makes the tables. What cannot be read is left out by its
name, and the rest is added; the exit code is 3 if that is a run or a rank.`,
		Example: `  memdiag fleet add my-run
  memdiag fleet add --mesh pp=4,dp=8,tp=2 --commit $GITHUB_SHA --fleet /shared/fleet run-*`,
		Args:              takes(1, unlimited, "runs"),
		ValidArgsFunction: completeRun,
		RunE: func(_ *cobra.Command, args []string) error {
			var incomplete error
			for _, arg := range args {
				err := f.add(arg, &a)
				switch {
				case err == nil:
				case len(args) == 1 || exitCode(err) != exitBadInput || errors.As(err, new(*fleetFault)):
					return err
				default:
					if !errors.Is(err, errIncomplete) {
						f.env.talk.say("%s is left out: %v", arg, err)
					}
					incomplete = badInput(errIncomplete)
				}
			}
			if incomplete == nil {
				f.next("leaks")
			}
			return incomplete
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&a.commit, "commit", "", "the `COMMIT` of the code; by default what GitHub's or GitLab's CI says")
	flags.Var(&a.mesh, "mesh", "where ranks are in the training, such as pp=4,dp=8,tp=2, the last axis changing fastest; pp is the stage, dp the replica")
	flags.Var(&a.paths, "paths", "whether names of files are kept, hashed or omitted")
	flags.Var(&a.commands, "commands", "whether command lines are kept, hashed or omitted")
	completeWords(cmd, "paths", privacy)
	completeWords(cmd, "commands", privacy)
	return cmd
}

type meshFlag fleet.Mesh

func (m *meshFlag) String() string { return fleet.Mesh(*m).String() }

// Type is the type of the value in help.
func (m *meshFlag) Type() string { return "axes" }

// Set parses the axes.
func (m *meshFlag) Set(text string) error {
	mesh, err := fleet.ParseMesh(text)
	*m = meshFlag(mesh)
	return err
}

// errIncomplete says that a run was added, except for parts that were reported as left out.
var errIncomplete = errors.New("not all of it could be read")

// add adds one run. A rank or a snapshot that cannot be read is left out and reported.
func (f *fleetFolder) add(name string, a *fleetAdding) error {
	env := f.env
	if err := f.begin(); err != nil {
		return err
	}
	run, left, err := env.openReadable(name)
	if err != nil {
		return err
	}
	if len(run.Ranks) > 1 && len(a.mesh) > 0 {
		size := 1
		for _, axis := range a.mesh {
			size *= axis.Length
		}
		if last := run.Ranks[len(run.Ranks)-1]; last >= size {
			return &exitError{exitUsage, fmt.Errorf("--mesh has %d ranks, and %s has rank %d", size, name, last)}
		}
	}
	path, err := filepath.Abs(cmp.Or(run.Path, filepath.Dir(run.Files[0])))
	if err != nil {
		return err
	}
	about := fleet.About{
		Path: path, Commit: cmp.Or(a.commit, env.getenv("GITHUB_SHA"), env.getenv("CI_COMMIT_SHA")), Mesh: fleet.Mesh(a.mesh),
		Paths: fleet.Privacy(a.paths.value), Commands: fleet.Privacy(a.commands.value), Added: env.now(), Version: version(),
	}
	c := fleet.NewCollector(run, about)
	began := time.Now()
	judged := 0
	take := func(run *snapshot.Run) error {
		for _, note := range run.Unread {
			env.talk.say("%s", note)
		}
		result, err := env.analyze(run, diff.DefaultOptions())
		if err == nil {
			c.Add(run, result)
			judged++
		}
		return err
	}
	ranks, at := run.Ranks, len(left.ranks) // at is the index of the open rank
	if err := take(run); err != nil {
		if len(ranks) < 2 {
			return err
		}
		left.say(ranks[at], err)
	}
	for i := at + 1; i < len(ranks); i++ {
		rank := ranks[i]
		env.talk.progress("judging rank %d, %d of %d", rank, i+1, len(ranks))
		other, err := awaited(env, noNews, func() (*snapshot.Run, error) { return env.openRank(run.Path, rank) })
		if err == nil {
			err = take(canary.Without(other))
		}
		if err != nil {
			left.say(rank, err)
		}
	}
	if judged == 0 {
		return left.first
	}
	if folder := env.folders[run.Path]; folder != nil {
		for _, rank := range folder.Ruined() {
			left.say(rank, errors.New("none of its snapshots can be read"))
		}
	}
	env.talk.clear()
	tables := c.Tables()
	before, err := f.store(tables)
	if err != nil {
		return err
	}
	with := ""
	if len(ranks) > 1 {
		with = fmt.Sprintf(" with %d ranks", judged)
	}
	env.talk.say("added %s as %s%s to %s in %s", name, c.ID, with, f.place(), duration(time.Since(began)))
	if less := tables.Less(before); less != "" {
		env.talk.say("%s has less than before: %s; if its folder was copied in part, copy it whole and add it again", name, less)
	}
	if len(left.ranks) > 0 {
		return badInput(fmt.Errorf("%s: %w", name, errIncomplete))
	}
	return nil
}

// leftOut are the ranks of a run that cannot be read or judged.
type leftOut struct {
	talk  *talker
	ranks []int
	first error
}

func (l *leftOut) say(rank int, err error) {
	l.talk.say("rank %d is left out: %v", rank, err)
	l.ranks = append(l.ranks, rank)
	l.first = cmp.Or(l.first, err)
}

// openReadable opens the lowest rank of a run that can be read, and returns which cannot.
func (env *environment) openReadable(name string) (*snapshot.Run, *leftOut, error) {
	left := &leftOut{talk: env.talk}
	env.rank = snapshot.NoRank
	run, err := env.openRun([]string{name})
	if err == nil {
		return run, left, nil
	}
	path, unknown := files.ResolveRun(name, ".")
	if unknown != nil || env.folders[path] == nil {
		return nil, nil, err
	}
	ranks := env.folders[path].Ranks()
	for i := 1; i < len(ranks); i++ {
		left.say(ranks[i-1], err)
		if run, err = env.openRank(path, ranks[i]); err == nil {
			return canary.Without(run), left, nil
		}
	}
	return nil, nil, cmp.Or(left.first, err)
}

// addRecorded adds a recorded run. If that fails, it says so, and the command's exit code stays.
func (env *environment) addRecorded(ctx context.Context, place, dir string) {
	f := &fleetFolder{env: env, dir: place, ctx: ctx}
	err := f.add(dir, &fleetAdding{paths: choice{value: string(fleet.Keep)}, commands: choice{value: string(fleet.Keep)}})
	if err != nil && !errors.Is(err, errIncomplete) {
		env.talk.fail(fmt.Errorf("%s was not added to the fleet: %w", dir, err))
		if !errors.As(err, new(*fleetFault)) { // for example a run without snapshots, which will not have any later
			return
		}
		env.talk.next("fleet add --fleet "+f.shellPlace(), dir)
	}
}

// fleetFault is an error of the fleet itself, not of a run: no other run can be added either.
type fleetFault struct{ error }

func (f *fleetFault) Unwrap() error { return f.error }

// age is a flag such as 90d or 12h.
type age time.Duration

func (a *age) String() string { return "" }

// Type is the type of the value in help.
func (a *age) Type() string { return "age" }

// Set parses the flag.
func (a *age) Set(text string) error {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil || n == 0 {
			return fmt.Errorf("want a number of days such as 90d")
		}
		*a = age(time.Duration(n) * 24 * time.Hour)
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return fmt.Errorf("want an age such as 90d or 12h")
	}
	*a = age(d)
	return nil
}
