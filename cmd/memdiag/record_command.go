package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/diff/canary"
	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/rundir"
	"github.com/memdiag/memdiag/snapshot/secret"
	"github.com/memdiag/memdiag/watch"
)

// commandJob is the options for recording a command.
type commandJob struct {
	record.Options
	noCommand bool // whether the command's words, or the URL, are left out of the run
	force     bool // whether to replace the finished run in the folder
	watch     bool // whether to report leaks while it runs
	budgets   budgetFlags
	fleet     string // folder or server of the fleet to add the run to; "" for none
}

// noCommandFlag adds the flag that leaves a command's words out of the run.
func noCommandFlag(cmd *cobra.Command, to *bool) {
	cmd.Flags().BoolVar(to, "no-command", false, "do not store the command or the URL of --pprof in the run; secrets are masked in any case")
}

// recordCommand runs a command and records it. The exit code is the command's.
func (env *environment) recordCommand(ctx context.Context, dir string, args []string, opts commandJob) error {
	env.preferUsersPrograms()
	if _, err := exec.LookPath(args[0]); err != nil && !errors.Is(err, exec.ErrDot) {
		return noCommand(secret.Words(args))
	}
	rank, remark := env.taskRank()
	if dir == "" {
		name := commandName(args)
		if rank != nil {
			name += fmt.Sprintf("-rank%d", *rank)
		}
		dir = env.freshFolder(name)
	}
	host, _ := os.Hostname() // only a remark in run.json
	var parameters map[string]string
	if opts.Canary {
		parameters = map[string]string{canary.Key: "true"}
	}
	words := args
	if opts.noCommand {
		words = []string{}
	}
	if script := missingScript(args); script != "" {
		return &exitError{exitUsage, fmt.Errorf("%s: there is no such script, and nothing was run", script)}
	}
	out, err := createRun(dir, opts.force, snapshot.Info{
		SchemaVersion: rundir.SchemaVersion, Command: words, Parameters: parameters, Every: opts.Every, Started: env.now(), Host: host, Version: version(), Rank: rank,
	}, args...)
	if err != nil {
		return err
	}
	began := env.now()
	opts.Witness = true
	watched := func() {}
	if opts.watch || len(opts.LogTo) > 0 {
		watched = env.watchBeside(ctx, dir, opts.budgets, env.shows(dir, opts, out.Rank()))
	}
	outcome, err := record.Run(ctx, out, record.Command{Args: args, Stdin: env.child.in, Stdout: env.child.out, Stderr: env.child.err}, opts.Options)
	watched()
	record.DropStanding(dir, out.Rank())
	if err != nil {
		env.abandon(out, err)
		if errors.Is(err, syscall.ENOEXEC) {
			err = withHint(err, "a script without #! in its first line is run by naming its interpreter: memdiag record -- sh %s", args[0])
		}
		return &exitError{exitOwn, err}
	}
	if remark != "" && !slices.Contains(outcome.Notes, remark) {
		outcome.Notes = append(outcome.Notes, remark)
	}
	took := duration(env.now().Sub(began))
	ended := fmt.Sprintf("ended with code %d", outcome.ExitCode)
	if outcome.Signal != "" {
		ended = "was ended by " + outcome.Signal
	}
	env.talk.say("%s %s after %s; %s in %s", commandName(args), ended, took, recorded(outcome), dir)
	failed := &exitError{code: outcome.ExitCode}
	if outcome.ExitCode != exitFine && env.putBack(out) {
		for _, n := range outcome.Notes {
			env.talk.say("%s", n)
		}
		return &notReplacedError{failed}
	}
	env.finish(out, outcome)
	if opts.fleet != "" {
		env.addRecorded(ctx, opts.fleet, dir)
	}
	if outcome.ExitCode != exitFine {
		return failed
	}
	return nil
}

// shows is what happens with looks at a run while it is recorded: they are printed, or passed to the agents, which log them.
func (env *environment) shows(dir string, opts commandJob, rank int) func(*watch.Look) {
	var standing *watch.Standing
	failed := false
	return func(look *watch.Look) {
		if opts.watch {
			env.sayEvents(look)
		}
		if len(opts.LogTo) == 0 {
			return
		}
		now := look.Standing(standing, workingFolder())
		standing = &now
		if err := record.WriteStanding(dir, rank, now); err != nil && !failed {
			env.talk.say("the verdict is not logged: %v", err)
			failed = true
		}
	}
}

// missingScript is the file that Python should run, if it does not exist; else "". If unknown flags come before it, it is "", and
// Python reports the problem.
func missingScript(args []string) string {
	if len(args) < 2 || !strings.HasPrefix(filepath.Base(args[0]), "python") || !strings.HasSuffix(args[1], ".py") {
		return ""
	}
	if _, err := os.Stat(args[1]); !errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return args[1]
}

// plainRank matches a rank in the form that the agent also accepts.
var plainRank = regexp.MustCompile(`^[0-9]{1,9}$`)

// taskRank is memdiag's own rank if srun, mpirun or a similar tool started several memdiags, else nil. The remark, in the agent's
// words, is about a value that is no rank.
func (env *environment) taskRank() (rank *int, remark string) {
	for _, name := range [...]string{"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"} {
		value := env.getenv(name)
		if plainRank.MatchString(value) {
			n, _ := strconv.Atoi(value) // so few digits fit into an int
			return &n, remark
		}
		if value != "" {
			remark = fmt.Sprintf("%s=%s is no rank, which has digits only, 9 at most; it is ignored", name, value)
		}
	}
	return nil, remark
}

// recordProfiles records the heap profiles of a running program until it ends or memdiag is interrupted, which is the normal way to
// stop it.
func (env *environment) recordProfiles(ctx context.Context, dir string, opts commandJob) error {
	if dir == "" {
		dir = env.freshFolder("pprof")
	}
	host, _ := os.Hostname() // only a remark in run.json
	var parameters map[string]string
	if !opts.noCommand {
		parameters = map[string]string{"pprof": opts.Profile}
	}
	out, err := createRun(dir, opts.force, snapshot.Info{
		SchemaVersion: rundir.SchemaVersion, Parameters: parameters, Started: env.now(), Host: host, Version: version(),
	})
	if err != nil {
		return err
	}
	began := env.now()
	env.talk.say("recording %s until it ends, or Ctrl-C", secret.Text(opts.Profile))
	ctx, stop := endedByMore(ctx)
	defer stop()
	watched := func() {}
	if opts.watch {
		watched = env.watchBeside(context.WithoutCancel(ctx), dir, opts.budgets, env.sayEvents) // Ctrl-C is the normal end
	}
	outcome, err := record.Attach(ctx, out, opts.Profile, opts.Interval)
	watched()
	if err != nil {
		env.abandon(out, err)
		return &exitError{exitOwn, withHint(err, "the program imports net/http/pprof, and serves it at this address")}
	}
	env.talk.say("recorded for %s; %s in %s", duration(env.now().Sub(began)), recorded(outcome), dir)
	if outcome.Snapshots > 0 || !env.putBack(out) {
		env.finish(out, outcome)
	}
	return nil
}

// abandon completes a run that could not be recorded, or restores the run that it was to replace.
func (env *environment) abandon(out *rundir.Writer, err error) {
	if !env.putBack(out) {
		_ = out.Finish(exitOwn, env.now(), err.Error()) // the first error counts
	}
}

// putBack restores the run that a run without a snapshot was to replace, says so, and reports whether nothing more is to be done. If it
// cannot restore the whole run, the new run stays without an end, so that the rest of the old one is never deleted.
func (env *environment) putBack(out *rundir.Writer) bool {
	done, err := out.PutBack()
	if err != nil {
		kept, _ := rundir.Kept(out.Dir())
		env.talk.say("the earlier run could not be restored, and is in %s: %v", kept, err)
	}
	if done {
		env.talk.say("nothing was recorded; the earlier run is in %s again", out.Dir())
	}
	return done || err != nil
}

// finish reports the results of a recording, and completes the run.
func (env *environment) finish(out *rundir.Writer, outcome *record.Outcome) {
	for _, n := range outcome.Notes {
		env.talk.say("%s", n)
	}
	out.Uses(outcome.Packages)
	out.Took(outcome.Steps, outcome.Unseen, outcome.Code, outcome.Followed)
	// The command's exit code must not be lost because of a full disk.
	if err := out.Finish(outcome.ExitCode, env.now(), slices.Concat(outcome.Found, outcome.Notes)...); err != nil {
		env.talk.say("the run's end is not recorded: %v", err)
	}
	if outcome.Snapshots > 1 {
		env.talk.next("diff", filepath.Clean(out.Dir()))
	}
}

// duration rounds a duration for people.
func duration(d time.Duration) time.Duration {
	if d >= time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return max(d.Round(time.Millisecond), time.Millisecond)
}

// recorded says how much of a run was recorded.
func recorded(o *record.Outcome) string {
	text := snapshots(o.Snapshots)
	if o.Steps > 0 {
		text += fmt.Sprintf(" of %d steps", o.Steps)
	}
	if o.LastStep > 0 {
		text += fmt.Sprintf(", the last at step %d,", o.LastStep)
	}
	return text
}

// noCommand is the error for words that are no command. It suggests the command that runs a script.
func noCommand(args []string) error {
	reason, hint := "no such command", "the command after -- is run without a shell"
	if info, err := os.Stat(args[0]); err == nil && info.Mode().IsRegular() {
		reason = "a file that is no command"
		hint = "the command after -- is run without a shell: name the program that runs the file, too"
	}
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = shellQuote(a)
	}
	script := strings.Join(words, " ")
	switch filepath.Ext(args[0]) {
	case ".py":
		python := "python"
		if _, err := exec.LookPath(python); err != nil {
			if _, err := exec.LookPath("python3"); err == nil {
				python = "python3"
			}
		}
		hint = "did you mean -- " + python + " " + script + "?"
	case ".sh":
		hint = "did you mean -- sh " + script + "?"
	}
	return &exitError{exitUsage, withHint(fmt.Errorf("%s: %s", args[0], reason), "%s", hint)}
}
