package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/canary"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/files"
	"github.com/memdiag/memdiag/snapshot/symbols"
)

// openRun opens what a command's arguments name. Without arguments it is the run in this folder, or the newest below it. One name is a
// run if there is one; else names are snapshots. A choice made for the user is reported. A canary that memdiag gate planted does not
// belong to the program, and is left out.
func (env *environment) openRun(args []string) (*snapshot.Run, error) {
	run, err := env.openWhole(args)
	if err != nil {
		return nil, err
	}
	return canary.Without(run), nil
}

// openWhole is openRun with the canary.
func (env *environment) openWhole(args []string) (*snapshot.Run, error) {
	if env.getenv != nil && env.getenv("GOGC") == "" {
		// A run is held in memory, and reading it makes little garbage. The usual 100 would let the heap grow to twice the run: 520 MB
		// instead of 440 MB for 200 snapshots of 20,000 sites, in the same time.
		debug.SetGCPercent(50)
	}
	defer env.talk.clear() // data may follow on the same terminal
	return awaited(env, noNews, func() (*snapshot.Run, error) { return env.readRun(args) })
}

// noNews is for a computation that reports its own progress.
func noNews(time.Duration) {}

// openRank reads one rank of the run in a folder, or the lowest. A folder is listed only once: a run with a thousand ranks has
// thousands of files.
func (env *environment) openRank(path string, rank int) (*snapshot.Run, error) {
	if env.folders == nil {
		env.folders = make(map[string]*files.Folder)
	}
	folder := env.folders[path]
	if folder == nil {
		var err error
		if folder, err = env.telling().LookThrough(path); err != nil {
			return nil, err
		}
		env.folders[path] = folder
	}
	return folder.OpenRank(rank)
}

// telling is the opener, with reports of what it reads.
func (env *environment) telling() files.Opener {
	o := env.opener
	among := ""
	o.Reading = func(path string, at, of int) {
		among = fmt.Sprintf(", %d of %d", at, of)
		env.talk.progress("reading %s%s", path, among)
	}
	o.Progress = func(path string, done, size int64) {
		env.talk.progress("reading %s%s: %s of %s", path, among, snapshot.Bytes(done), snapshot.Bytes(size))
	}
	return o
}

func (env *environment) readRun(args []string) (*snapshot.Run, error) {
	if len(args) < 2 {
		path, err := files.ResolveRun(strings.Join(args, ""), ".")
		if err == nil {
			if len(args) == 0 && path != "." {
				env.talk.say("the newest run here is %s", path)
			}
			return env.openRank(path, env.rank)
		}
		if len(args) == 0 || !isSnapshot(args[0]) {
			return nil, err
		}
	}
	if err := noRuns(args); err != nil {
		return nil, err
	}
	if env.rank != snapshot.NoRank {
		return nil, &exitError{exitUsage, withHint(errors.New("--rank needs the folder of a run, not snapshots"), "name those of one rank, or the folder of the run")}
	}
	paths, err := env.resolve(args...)
	if err != nil {
		return nil, err
	}
	return env.telling().OpenSnapshots(paths...)
}

// freshFolder is a name for a run's folder, from what is run and the time, that no other run of the same second has taken.
func (env *environment) freshFolder(what string) string {
	name := fmt.Sprintf("%s-%s", what, env.now().Format("20060102-150405"))
	dir := name
	for n := 2; ; n++ {
		if _, err := os.Lstat(dir); err != nil {
			return dir
		}
		dir = fmt.Sprintf("%s-%d", name, n)
	}
}

// rankFlag adds the flag for one rank of several.
func (env *environment) rankFlag(cmd *cobra.Command) {
	env.rank = snapshot.NoRank
	cmd.Flags().Var((*rankValue)(&env.rank), "rank", "the one rank to look at, of a run of several")
}

// symbolsFlag adds the flag for binaries that name the addresses in heap profiles.
func (env *environment) symbolsFlag(cmd *cobra.Command) {
	env.opener.Symbols = nil
	cmd.Flags().Var(symbolsValue{&env.opener}, "symbols", "name addresses in heap profiles of jemalloc and gperftools by the symbols of this `BINARY`; may be repeated")
}

// symbolsValue is a flag for binaries.
type symbolsValue struct{ opener *files.Opener }

func (v symbolsValue) String() string { return "" }
func (v symbolsValue) Type() string   { return "BINARY" }

// Set implements pflag.Value.
func (v symbolsValue) Set(name string) error {
	if v.opener.Symbols == nil {
		v.opener.Symbols = &symbols.Table{}
	}
	return v.opener.Symbols.Add(name)
}

// rankValue is a flag for the number of a rank.
type rankValue int

func (v *rankValue) String() string { return "" }

// Type is the type of the value in help.
func (v *rankValue) Type() string { return "int" }

// Set parses a rank.
func (v *rankValue) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return errors.New("want the number of a rank, from 0 on")
	}
	*v = rankValue(n)
	return nil
}

// openSnapshot opens one snapshot, and returns its file.
func (env *environment) openSnapshot(name string) (*snapshot.Snapshot, string, error) {
	return env.openSnapshotAt(name, snapshot.At{})
}

// openSnapshotAt is openSnapshot at a moment in the record.
func (env *environment) openSnapshotAt(name string, at snapshot.At) (*snapshot.Snapshot, string, error) {
	return env.openSnapshotBy(name, func(o *files.Opener) { o.At = at })
}

// openSnapshotBy is openSnapshot with an opener that set has changed.
func (env *environment) openSnapshotBy(name string, set func(*files.Opener)) (*snapshot.Snapshot, string, error) {
	paths, err := env.resolve(name)
	if err != nil {
		return nil, "", err
	}
	defer env.talk.clear()
	s, err := awaited(env, noNews, func() (*snapshot.Snapshot, error) {
		o := env.telling()
		set(&o)
		return o.Open(paths[0])
	})
	return s, paths[0], err
}

// openLast is openSnapshot, or opens the last readable snapshot of a run and reports which that is.
func (env *environment) openLast(name string) (*snapshot.Snapshot, string, error) {
	return env.openOfRun(name, "the last readable snapshot of %s is %s", files.Opener.OpenLast)
}

// openOfRun reads a snapshot, or the snapshot of a run that open chooses.
func (env *environment) openOfRun(name, say string, open func(files.Opener, string) (*snapshot.Snapshot, string, error)) (*snapshot.Snapshot, string, error) {
	dir, err := files.ResolveRun(name, ".")
	if err != nil || isSnapshot(name) {
		return env.openSnapshot(name)
	}
	defer env.talk.clear()
	var path string
	last, err := awaited(env, noNews, func() (s *snapshot.Snapshot, err error) {
		s, path, err = open(env.telling(), dir)
		return s, err
	})
	if err == nil && path != "" {
		env.talk.say(say, name, path)
	}
	return last, path, err
}

// resolve finds the files of snapshots, and reports their run if no name gives it.
func (env *environment) resolve(names ...string) ([]string, error) {
	var paths []string
	newest := ""
	for _, name := range names {
		path, err := files.Resolve(name, ".")
		if err != nil {
			return nil, err
		}
		if dir := filepath.Dir(path); dir != filepath.Dir(name) {
			newest = dir
		}
		paths = append(paths, path)
	}
	if newest != "" {
		env.talk.say("the newest run here is %s", newest)
	}
	return paths, nil
}

func isSnapshot(name string) bool {
	_, err := files.Resolve(name, ".")
	return err == nil
}

// noRuns returns an error if there are runs among several names, with the commands that compare two.
func noRuns(names []string) error {
	var runs []string
	for _, name := range names {
		if _, err := files.ResolveRun(name, "."); err == nil && !isSnapshot(name) {
			runs = append(runs, name)
		}
	}
	switch {
	case len(runs) == 0:
		return nil
	case len(runs) == 2 && len(names) == 2:
		before, after := shellPath(runs[0]), shellPath(runs[1])
		return &exitError{exitUsage, withHint(fmt.Errorf("%s and %s are two runs; this command takes one", runs[0], runs[1]),
			"memdiag verify %s %s tells whether a fix worked; memdiag diff %s --against %s tells what leaks in the second and not in the first", before, after, after, before)}
	}
	return &exitError{exitUsage, withHint(fmt.Errorf("%s is a run; with several names all must be snapshots", runs[0]),
		"name one run, or snapshots only, such as %s", filepath.Join(runs[0], "snapshot_50"))}
}

// spare returns an error if the output is one of the files that the command reads.
func spare(cmd *cobra.Command, output string, inputs ...string) error {
	out, err := os.Stat(output)
	if err != nil {
		return nil //nolint:nilerr // a missing file cannot be overwritten
	}
	for _, path := range inputs {
		if in, err := os.Stat(path); err == nil && os.SameFile(in, out) {
			return usageOf(cmd, withHint(fmt.Errorf("%s: the output would overwrite an input of this command", output), "name another file"))
		}
	}
	return nil
}

// textFormat is the format of a text or JSON result: by output's ending, else by the flag.
func textFormat(cmd *cobra.Command, output string, flag choice) (json bool, err error) {
	switch strings.ToLower(filepath.Ext(output)) {
	case ".json":
		return true, nil
	case ".txt", "":
		return flag.value == "json", nil
	}
	return false, usagef(cmd, "%s: the result is a .txt or a .json", output)
}

// formatOf is the format of a result, out of the flag's formats: by output's ending, else by the flag.
func formatOf(cmd *cobra.Command, output string, flag choice) (string, error) {
	ending := strings.TrimPrefix(strings.ToLower(filepath.Ext(output)), ".")
	switch {
	case ending == "txt":
		return "text", nil
	case ending == "" || output == "-":
		return flag.value, nil
	case ending != "text" && slices.Contains(flag.of, ending):
		return ending, nil
	}
	return "", usagef(cmd, "%s: the result is a .txt, a .%s", output, strings.Join(flag.of[1:], ", a ."))
}

// atLeastOne checks --top.
func atLeastOne(cmd *cobra.Command, top int) error {
	if top < 1 {
		return usagef(cmd, "--top is at least 1")
	}
	return nil
}

// choice is a flag that takes one of a few words.
type choice struct {
	value string
	of    []string
}

func textOrJSON() choice { return choice{"text", []string{"text", "json"}} }

func (c *choice) String() string { return c.value }

// Type names the values in help.
func (c *choice) Type() string { return strings.Join(c.of, "|") }

// Set returns an error for any other word.
func (c *choice) Set(v string) error {
	for _, w := range c.of {
		if v == w {
			c.value = v
			return nil
		}
	}
	return fmt.Errorf("want %s", strings.Join(c.of, " or "))
}

// textShape is the width and colour of text for path, or for standard output if path is "" or "-".
func (env *environment) textShape(path string) (width int, color bool) {
	if path != "" && path != "-" {
		return 0, false
	}
	return env.out.width, env.out.color
}

// relativeTo makes the file names in a run's result, and in those of its other ranks, relative to a folder.
func relativeTo(folder report.Folder, result *diff.Result, ranks []report.RankResult) {
	all := []*diff.Result{result}
	for _, r := range ranks {
		if r.Result != nil && r.Result != result {
			all = append(all, r.Result)
		}
	}
	folder.Results(all...)
}

// workingFolder is the command's working folder: the shell's path, and the path without links, which programs record. It is empty if
// neither is known.
func workingFolder() (out report.Folder) {
	if dir, err := os.Getwd(); err == nil {
		out = append(out, dir)
		if real, err := filepath.EvalSymlinks(dir); err == nil && real != dir {
			out = append(out, real)
		}
	}
	return out
}
