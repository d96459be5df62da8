package main

import (
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/files"
)

func newShowCommand(env *environment) *cobra.Command {
	format := textOrJSON()
	var output string
	text := report.TextOptions{}
	at := atFlag{auto: true}
	by := choice{string(report.BySite), []string{string(report.BySite), string(report.ByOperator), string(report.ByModule)}}
	var since, source string
	cmd := &cobra.Command{
		Use:     "show SNAPSHOT | show RUN",
		GroupID: groupLook,
		Short:   "one snapshot: a first verdict, memory, call sites, fragmentation",
		Long: `Shows one snapshot, of any format that memdiag reads; of a run, the last one. It
prints a first verdict if the file says when blocks were allocated, the allocator's
memory, the call sites that hold most, the age of their blocks, and the blocks that
pin segments.

A PyTorch snapshot has a history of allocations and frees. --at shows what was live
at a moment in it. If the history has an out-of-memory error, that is the default.`,
		Example: `  memdiag show snapshot_50
  memdiag show my-run
  memdiag show dump_snapshot.pickle --top 20
  memdiag show dump_snapshot.pickle --at peak
  memdiag show my-run --source train.py
  memdiag show trace_6.json.gz --by module --since trace_2.json.gz`,
		Args:              takes(1, 1, "snapshot or run"),
		ValidArgsFunction: completeSnapshot,
		RunE: func(cmd *cobra.Command, args []string) error {
			json, err := textFormat(cmd, output, format)
			if err != nil {
				return err
			}
			if err := atLeastOne(cmd, text.Top); err != nil {
				return err
			}
			text.By = report.Grouping(by.value)
			if since != "" && text.By == report.BySite {
				return usagef(cmd, "--since is for --by operator and --by module; memdiag diff compares sites")
			}
			s, path, err := env.openAt(args[0], &at)
			if err != nil {
				return err
			}
			if since != "" {
				var earlier string
				if text.Since, earlier, err = env.openSnapshotAt(since, at.at); err != nil {
					return err
				}
				if err := spare(cmd, output, earlier); err != nil {
					return err
				}
			}
			if err := spare(cmd, output, path, source); err != nil {
				return err
			}
			if !json {
				workingFolder().Snapshot(s)
			}
			if source != "" {
				if text.Source, err = readSource(source, s); err != nil {
					return err
				}
			}
			text.Width, text.Color = env.textShape(output)
			text.Run = env.runUpTo(s, path)
			if err := env.result(output, false, func(w io.Writer) error {
				if json {
					return report.ShowJSON(w, s, text)
				}
				return report.Show(w, s, text)
			}); err != nil {
				return err
			}
			env.afterShow(s, path, at.auto && at.at == snapshot.At{})
			return nil
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&text.Top, "top", 10, "how many stacks to list")
	at.register(cmd)
	flags.Var(&by, "by", "what to add live memory up by: call site, PyTorch operator, or path of modules")
	completeWords(cmd, "by", by.of)
	flags.StringVar(&source, "source", "", "show live memory beside the lines of a source `FILE`, in place of call sites; memory of other files counts for the line that calls them")
	cmd.MarkFlagsMutuallyExclusive("by", "source")
	flags.StringVar(&since, "since", "", "with --by operator or module, an earlier snapshot to compare with")
	flags.Var(&format, "format", "format on standard output: text or json")
	completeWords(cmd, "format", format.of)
	env.symbolsFlag(cmd)
	flags.StringVarP(&output, "output", "o", "", "write to `FILE`: .txt, or .json for JSON")
	return cmd
}

// openAt reads a snapshot. For a run it is the last one, or with --at oom the one with the out-of-memory error.
func (env *environment) openAt(name string, at *atFlag) (*snapshot.Snapshot, string, error) {
	switch {
	case at.at != (snapshot.At{}) && isSnapshot(name):
		return env.openSnapshotAt(name, at.at) // without first reading its end
	case at.at.Kind == snapshot.AtOOM:
		return env.openOfRun(name, "memory ran out in %s; %s has the record of it", files.Opener.OpenOutOfMemory)
	}
	s, path, err := env.openLast(name)
	if err != nil || path == "" || !at.wanted(s) {
		return s, path, err
	}
	atEnd := s.Notes
	if s, path, err = env.openSnapshotAt(path, at.at); err != nil {
		return nil, path, err
	}
	for _, note := range atEnd { // those on later files of the run are not in this file
		if !slices.Contains(s.Notes, note) {
			s.Notes = append(s.Notes, note)
		}
	}
	return s, path, nil
}

// afterShow names the commands that show more: the record of a PyTorch snapshot at its peak and as a page, or the run of the snapshot.
func (env *environment) afterShow(s *snapshot.Snapshot, path string, atEnd bool) {
	switch run := filepath.Dir(path); {
	case path == "":
	case s.History.Events > 0 && strings.HasPrefix(s.Producer, "PyTorch"):
		if atEnd {
			env.talk.next("show --at peak", path)
		}
		env.talk.next("timeline", path)
	case isRun(run):
		env.talk.next("diff", run)
	}
}

// atFlag is --at.
type atFlag struct {
	at   snapshot.At
	auto bool // whether it was not given
}

// register adds the flag for one snapshot at a moment.
func (f *atFlag) register(cmd *cobra.Command) {
	cmd.Flags().Var(f, "at", "moment in a PyTorch snapshot's history: peak, oom, start, end, step:N, or time:DURATION since its first event (default oom where a request failed, else end)")
	completeWords(cmd, "at", []string{"peak", "oom", "start", "end"})
}

func (f *atFlag) String() string {
	if f.auto {
		return ""
	}
	return f.at.String()
}

func (f *atFlag) Type() string { return "MOMENT" }

// Set implements pflag.Value.
func (f *atFlag) Set(text string) (err error) {
	f.auto = false
	f.at, err = snapshot.ParseAt(text)
	return err
}

// turnTo reads the only snapshot of a run at the requested moment.
func (env *environment) turnTo(cmd *cobra.Command, run *snapshot.Run, at *atFlag) (err error) {
	switch {
	case len(run.Snapshots) != 1 && !at.auto:
		return usagef(cmd, "--at is for one snapshot; memdiag diff compares two at a moment")
	case len(run.Snapshots) == 1 && at.wanted(run.Snapshots[0]):
		run.Snapshots[0], _, err = env.openSnapshotAt(run.Files[len(run.Files)-1], at.at)
	}
	return err
}

// wanted reports whether a snapshot that was read at its end should be read at a moment.
func (f *atFlag) wanted(s *snapshot.Snapshot) bool {
	if f.auto && s.History.Refused != nil {
		f.at = snapshot.At{Kind: snapshot.AtOOM}
	}
	return f.at != snapshot.At{}
}
