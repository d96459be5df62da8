package main

import (
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
)

func newFlameCommand(env *environment) *cobra.Command {
	var output string
	var focus, from, hide string
	rate, tree, invert, at := false, false, false, atFlag{auto: true}
	var push profilePush
	options := report.FlameOptions{}
	cmd := &cobra.Command{
		Use:     "flame [RUN | SNAPSHOT | SNAPSHOT SNAPSHOT …]",
		GroupID: groupLook,
		Short:   "draw memory by stack: of one snapshot, or the growth between two",
		Long: `Draws a flamegraph of one snapshot's live memory, of the growth from the first
snapshot to the last, or of its rate. The SVG opens in any browser; zoom and search
need no server. --tree prints the same as a tree of calls.

--at draws one PyTorch snapshot at a moment in its history. If the history has an
out-of-memory error, that is the default.`,
		Example: `  memdiag flame snapshot_0 snapshot_50
  memdiag flame my-run --rate
  memdiag flame my-run --tree --focus optimizer
  memdiag flame my-run --invert --hide site-packages
  memdiag flame my-run --tree --from 'forward .*model.py'   # and with --invert: its callers
  memdiag flame my-run -o growth.pb.gz   # for go tool pprof
  memdiag flame my-run --push http://pyroscope:4040 --label team=vision`,
		ValidArgsFunction: completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			selected := report.Selection{Invert: invert}
			for _, e := range []struct {
				of       **regexp.Regexp
				flag, is string
			}{{&selected.Focus, "focus", focus}, {&selected.From, "from", from}, {&selected.Hide, "hide", hide}} {
				if e.is == "" {
					continue
				}
				expression, err := regexp.Compile(e.is)
				if err != nil {
					return usagef(cmd, "--%s: %v", e.flag, err)
				}
				*e.of = expression
			}
			write, err := flameFormat(cmd, output, options)
			if err != nil {
				return err
			}
			if tree {
				output = "-"
				write = func(w io.Writer, p *report.Profile) error {
					o := report.TextOptions{}
					o.Width, o.Color = env.textShape(output)
					return report.Tree(w, p, o)
				}
			} else if invert && strings.HasSuffix(output, ".pb.gz") {
				return usagef(cmd, "--invert: a .pb.gz is not inverted; pprof draws it from either end")
			}
			run, err := env.openRun(args)
			if err != nil {
				return err
			}
			if err := spare(cmd, output, run.Files...); err != nil {
				return err
			}
			if err := env.turnTo(cmd, run, &at); err != nil {
				return err
			}
			var here report.Folder
			if output == "-" || strings.HasSuffix(output, ".svg") { // the other formats are for programs
				here = workingFolder()
			}
			profile, err := env.profileOf(cmd, run, rate, here)
			if err != nil {
				return err
			}
			if drawn := len(profile.Samples) > 0; !profile.Select(selected) && drawn && focus+from != "" {
				return usagef(cmd, "no stack that is drawn has a call that matches --focus and --from")
			}
			if push.to.URL != nil {
				return push.send(cmd, env, run, profile)
			}
			if err := env.result(output, strings.HasSuffix(output, ".pb.gz"), func(w io.Writer) error { return write(w, profile) }); err != nil {
				return err
			}
			env.wrote(output)
			if n := profile.Shrunk(); n > 0 && strings.HasSuffix(output, ".folded") {
				env.talk.say("%d stacks that shrank are left out: a folded line has one figure; the .svg and the .pb.gz have them", n)
			}
			return nil
		},
	}
	env.rankFlag(cmd)
	env.symbolsFlag(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&output, "output", "o", "flame.svg", "write to `FILE`: .svg, .pb.gz (pprof) or .folded (folded stacks); - for SVG on standard output")
	at.register(cmd)
	flags.BoolVar(&rate, "rate", false, "draw bytes per step over the run; grey may be zero")
	flags.StringVar(&focus, "focus", "", "draw only stacks with a call that matches this `REGEXP`, as \"function (file:line)\"")
	flags.StringVar(&from, "from", "", "begin stacks at the call that matches this `REGEXP`: its callees, or with --invert its callers")
	flags.StringVar(&hide, "hide", "", "leave out calls that match this `REGEXP`")
	flags.BoolVar(&invert, "invert", false, "draw stacks from the allocating call outwards")
	flags.BoolVar(&tree, "tree", false, "print a tree of calls, and write no file")
	cmd.MarkFlagsMutuallyExclusive("tree", "output")
	push.flags(cmd)
	flags.StringVar(&options.Title, "title", "", "the flamegraph's title")
	return cmd
}

func flameFormat(cmd *cobra.Command, output string, options report.FlameOptions) (func(io.Writer, *report.Profile) error, error) {
	switch {
	case output == "-", strings.HasSuffix(output, ".svg"):
		return func(w io.Writer, p *report.Profile) error { return report.Flame(w, p, options) }, nil
	case strings.HasSuffix(output, ".pb.gz"):
		return report.Pprof, nil
	case strings.HasSuffix(output, ".folded"), strings.HasSuffix(output, ".txt"):
		return report.Folded, nil
	}
	return nil, usagef(cmd, "%s: a flamegraph is a .svg, a .pb.gz or a .folded", output)
}

// profileOf is the live memory of one snapshot, or the growth or its rate over several. Its title names the run's folder or the files.
func (env *environment) profileOf(cmd *cobra.Command, run *snapshot.Run, rate bool, here report.Folder) (*report.Profile, error) {
	var profile *report.Profile
	if len(run.Snapshots) == 1 && !rate {
		here.Snapshot(run.Snapshots[0])
		profile = report.LiveProfile(run.Snapshots[0])
	} else {
		result, _, err := env.judge(cmd, run, diff.DefaultOptions())
		if err != nil {
			return nil, err
		}
		here.Results(result)
		profile = report.GrowthProfile(result)
		if rate {
			if !result.Comparable {
				return nil, badInput(errors.New("there are no rates between snapshots that cannot be compared; without --rate, flame draws what they hold"))
			}
			profile = report.RateProfile(result)
		}
	}
	if name := nameOf(run); name != "" {
		profile.Title += " · " + report.Printable(name)
	}
	return profile, nil
}

// nameOf is the name of a run's folder, or of the first and last file of loose snapshots, with their folders' names.
func nameOf(run *snapshot.Run) string {
	if run.Path != "" {
		full, err := filepath.Abs(run.Path)
		if err != nil {
			return run.Path
		}
		return filepath.Base(full)
	}
	short := func(path string) string {
		return filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path))
	}
	first, last := short(run.Files[0]), short(run.Files[len(run.Files)-1])
	if first == last {
		return first
	}
	return first + " to " + last
}
