package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/canary"
	"github.com/memdiag/memdiag/fleet"
	"github.com/memdiag/memdiag/snapshot"
)

// fleetAdding is what is said of runs that are added.
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
again. Several processes may add at once. The folder is made if it is missing.`,
		Example: `  memdiag fleet add my-run
  memdiag fleet add --mesh pp=4,dp=8,tp=2 --commit $GITHUB_SHA --fleet /shared/fleet run-*`,
		Args:              takes(1, unlimited, "runs"),
		ValidArgsFunction: completeRun,
		RunE: func(_ *cobra.Command, args []string) error {
			for _, arg := range args {
				if err := f.add(arg, &a); err != nil {
					return err
				}
			}
			f.next("leaks")
			return nil
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

// Type is what help shows for the value.
func (m *meshFlag) Type() string { return "axes" }

// Set parses the axes.
func (m *meshFlag) Set(text string) error {
	mesh, err := fleet.ParseMesh(text)
	*m = meshFlag(mesh)
	return err
}

// add adds one run.
func (f *fleetFolder) add(name string, a *fleetAdding) error {
	env := f.env
	if err := fleetError(fleet.Init(f.folder())); err != nil {
		return cannotAdd(f.folder(), err)
	}
	env.rank = snapshot.NoRank
	run, err := env.openRun([]string{name})
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
		result, err := env.analyze(run, diff.DefaultOptions())
		if err == nil {
			c.Add(run, result)
			judged++
		}
		return err
	}
	if err := take(run); err != nil {
		return err
	}
	lowest := run.Snapshots[0].Rank
	for i, rank := range slices.DeleteFunc(slices.Clone(run.Ranks), func(r int) bool { return r == lowest }) {
		env.talk.progress("judging rank %d, %d of %d", rank, i+2, len(run.Ranks))
		other, err := awaited(env, noNews, func() (*snapshot.Run, error) { return env.openRank(run.Path, rank) })
		if err == nil {
			err = take(canary.Without(other))
		}
		if err != nil {
			env.talk.say("rank %d is left out: %v", rank, err)
		}
	}
	env.talk.clear()
	tables := c.Tables()
	if err := fleet.Add(f.folder(), tables); err != nil {
		return cannotAdd(f.folder(), fleetError(err))
	}
	ranks := ""
	if len(run.Ranks) > 1 {
		ranks = fmt.Sprintf(" with %d ranks", judged)
	}
	env.talk.say("added %s as %s%s to %s in %s", name, c.ID, ranks, f.folder(), duration(time.Since(began)))
	return nil
}

// addRecorded adds a run that was recorded. If it cannot, that is said, and the command's exit code stays.
func (env *environment) addRecorded(folder, dir string) {
	f := &fleetFolder{env: env, dir: folder}
	if err := f.add(dir, &fleetAdding{paths: choice{value: string(fleet.Keep)}, commands: choice{value: string(fleet.Keep)}}); err != nil {
		env.talk.say("%s was not added to the fleet: %v", dir, err)
	}
}

// cannotAdd is memdiag's own error unless it has a code already.
func cannotAdd(folder string, err error) error {
	if exitCode(err) != exitOwn {
		return err
	}
	return cannotWrite(folder, err)
}

// age is a flag such as 90d or 12h.
type age time.Duration

func (a *age) String() string { return "" }

// Type is what help shows for the value.
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
