package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/doctor"
	"github.com/memdiag/memdiag/doctor/source"
	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/rundir"
	"github.com/memdiag/memdiag/snapshot/secret"
)

// lab runs a command repeatedly, each time in its own folder below one.
type lab struct {
	env       *environment
	args      []string
	out       string
	every     interval
	heap      choice
	options   diff.Options
	noCommand bool
	runs      int
	// mayFail: a run that ends with an exit code other than 0 is judged, too.
	mayFail bool
	// experiment: the first run is compared with the others, and recorded the same way.
	experiment  bool
	steps       int64    // the value of {steps}
	environment []string // NAME=VALUE for the command, added to memdiag's own environment
	ranked      bool     // whether there are several ranks; rank is then the one that is examined
	rank        int
}

// flags adds the flags of each command that runs another one in a lab.
func (l *lab) flags(cmd *cobra.Command, format *choice) {
	flags := cmd.Flags()
	flags.Var(format, "format", "format on standard output: text or json")
	completeWords(cmd, "format", format.of)
	flags.StringVarP(&l.out, "out", "o", "", "`DIR` of the runs: new or empty; by default named by what is run and the time")
	flags.Var(&l.every, "every", "`STEPS` between snapshots, or a time such as 30s; by default chosen")
	flags.Var(&l.heap, "python-heap", "trace Python's heap by line, which slows Python down; auto traces only while the heap grows")
	completeWords(cmd, "python-heap", l.heap.of)
	noCommandFlag(cmd, &l.noCommand)
}

// tail keeps the end of what is written to it.
type tail struct{ text []byte }

const tailSize = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if extra := len(t.text) - tailSize; extra > 0 {
		t.text = append(t.text[:0], t.text[extra:]...)
	}
	return len(p), nil
}

// last is the last line.
func (t *tail) last() string {
	lines := strings.Split(strings.TrimSpace(string(t.text)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// run records the command, changed or not, and judges the run. The first run's output is shown on standard error; of the others only
// the hash and the last line are kept.
func (l *lab) run(ctx context.Context, name string, of doctor.Change) (*doctor.Run, error) {
	env, change := l.env, of.Intervention
	if err := l.begin(); err != nil {
		return nil, err
	}
	if of.Steps > 0 {
		l.steps = of.Steps
	}
	args := slices.Concat(inSteps(l.args, l.steps), of.Args)
	if len(of.Files) > 0 {
		patched, remove, err := source.Overlay(args, of.Files)
		if err != nil {
			return &doctor.Run{Why: err.Error()}, nil
		}
		defer remove()
		args = patched
	}
	dir := filepath.Join(l.out, name)
	words := inSteps(l.args, l.steps)
	if l.noCommand {
		words = []string{}
	}
	host, _ := os.Hostname() // only a remark in run.json
	info := snapshot.Info{SchemaVersion: rundir.SchemaVersion, Command: words, Every: l.every.steps, Started: env.now(), Host: host, Version: version()}
	if len(of.Files) > 0 {
		info.Parameters = map[string]string{"changed": "patched files"}
	} else if change != nil && change.Kind != record.Count {
		info.Parameters = map[string]string{"changed": strings.TrimSuffix(fmt.Sprintf("%s of %s", change.Kind, change.Path), " of ")}
	}
	out, err := createRun(dir, false, info)
	if err != nil {
		return nil, err
	}
	var said tail
	hash := xxhash.New()
	output := &counting{w: hash}
	command := record.Command{Args: args, Env: l.environment, Stdout: output, Stderr: &said}
	if l.runs == 0 {
		command.Stdout, command.Stderr = io.MultiWriter(output, env.child.err), io.MultiWriter(&said, env.child.err)
	}
	env.talk.status(fmt.Sprintf("running it %s, into %s", says(name, of), dir))
	l.runs++
	began := env.now()
	outcome, err := record.Run(ctx, out, command, record.Options{Every: l.every.steps, Interval: l.every.time, PythonHeap: l.heap.value, Witness: true, Experiment: l.experiment, Intervention: change})
	if err != nil {
		env.abandon(out, err)
		return nil, err
	}
	env.talk.clear()
	run := &doctor.Run{Dir: dir, Took: env.now().Sub(began), ExitCode: outcome.ExitCode, Died: outcome.Died, Said: said.last(), Output: doctor.Output{Bytes: output.n, Sum: hash.Sum64()}}
	out.Uses(outcome.Packages)
	out.Took(outcome.Steps, outcome.Unseen, outcome.Code, outcome.Followed)
	if err := out.Finish(outcome.ExitCode, env.now(), outcome.Notes...); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		run.Choose(outcome.Intervened, of.Process, l.rank)
		run.Why = "it was interrupted; memdiag diff " + dir + " tells what was recorded until then"
		return run, ctx.Err()
	}
	if (change == nil || change.Kind == record.Count) && len(of.Files) == 0 && !l.mayFail && outcome.ExitCode != exitFine && outcome.Died == "" {
		failed := fmt.Errorf("%s ended with code %d: a run that failed is not examined", commandName(l.args), outcome.ExitCode)
		if l.runs > 1 && run.Said != "" { // the first run has shown it
			failed = fmt.Errorf("%w; its last words: %s", failed, run.Said)
		}
		return nil, &exitError{exitOwn, withHint(failed, "memdiag diff %s judges what was recorded so far", dir)}
	}
	err = l.judge(run)
	run.Choose(outcome.Intervened, of.Process, l.rank)
	return run, err
}

// judge adds the result of diff, if the run has enough snapshots. In all runs it is for the rank that leaks in the first.
func (l *lab) judge(run *doctor.Run) error {
	read, err := l.env.openToVerify(run.Dir)
	if err != nil {
		return err
	}
	if n := len(read.Snapshots); n < 2 {
		run.Why = fmt.Sprintf("%s has %s, and growth takes two", run.Dir, snapshots(n))
		return nil
	}
	if run.Result, err = l.env.analyze(read, l.options); err != nil {
		return err
	}
	ranks := l.env.judgeRanks(read, l.options, run.Result, func(*diff.Result) {})
	switch {
	case len(ranks) > 0:
	case !l.ranked:
		return nil
	default: // only one rank wrote snapshots, and it may not be the examined one
		ranks = []report.RankResult{{Rank: run.Result.Last.Rank, Result: run.Result}}
	}
	if !l.ranked {
		l.ranked, l.rank = true, run.Result.Last.Rank
		if i := slices.IndexFunc(ranks, leaks); i >= 0 {
			l.rank = ranks[i].Rank
		}
	}
	run.Ranks, run.Rank, run.Result = len(ranks), l.rank, nil
	for i := range ranks {
		if leaks(ranks[i]) {
			run.Leaking++
		}
		if ranks[i].Rank == l.rank {
			run.Result, run.Why = ranks[i].Result, ranks[i].Why
		}
	}
	if run.Result == nil && run.Why == "" {
		run.Why = fmt.Sprintf("%s has no rank %d", run.Dir, l.rank)
	}
	return nil
}

// leaks reports whether a rank leaks, in its own process or in another.
func leaks(r report.RankResult) bool {
	if r.Result == nil {
		return false
	}
	e := r.Result.ProcessGrowth()
	return r.Result.Leaks() > 0 || e != nil && !e.Uneven || len(r.Result.Children) > 0
}

// stepsWord is the placeholder in a command for the number of steps, which doctor chooses.
const stepsWord = "{steps}"

func inSteps(args []string, steps int64) []string {
	out := slices.Clone(args)
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], stepsWord, fmt.Sprint(steps))
	}
	return out
}

// begin checks the command and makes the folder before the first run.
func (l *lab) begin() error {
	if l.runs > 0 {
		return nil
	}
	l.env.preferUsersPrograms()
	if _, err := exec.LookPath(l.args[0]); err != nil && !errors.Is(err, exec.ErrDot) {
		return noCommand(secret.Words(l.args))
	}
	if script := missingScript(l.args); script != "" {
		return &exitError{exitUsage, fmt.Errorf("%s: there is no such script, and nothing was run", script)}
	}
	if l.out == "" {
		l.out = l.env.freshFolder("doctor-" + commandName(l.args))
	}
	if entries, err := os.ReadDir(l.out); err == nil && len(entries) > 0 {
		return &rundir.NotEmptyError{Dir: l.out}
	}
	if err := rundir.MakeFolder(l.out); err != nil {
		return cannotWrite(l.out, err)
	}
	return nil
}

// counting counts the bytes that are written.
type counting struct {
	w io.Writer
	n int64
}

func (c *counting) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// python is the interpreter that reads the program's source: the one that runs it, if the user named it here, else the first on PATH.
// Names from a recorded run's command are never executed.
func (l *lab) python() (source.Python, error) {
	if len(l.args) > 0 && strings.HasPrefix(filepath.Base(l.args[0]), "python") {
		if path, err := exec.LookPath(l.args[0]); err == nil {
			return source.Python(path), nil
		}
	}
	return pythonOnPath()
}

func pythonOnPath() (source.Python, error) {
	for _, name := range []string{"python3", "python"} {
		if path, err := exec.LookPath(name); err == nil {
			return source.Python(path), nil
		}
	}
	return "", &exitError{exitOwn, withHint(errors.New("there is no Python on the PATH to read the program's source"), "install python3")}
}
