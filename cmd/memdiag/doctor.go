package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/doctor"
	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/secret"
)

func newDoctorCommand(env *environment) *cobra.Command {
	format := choice{"text", []string{"text", "json"}}
	l := &lab{env: env, rank: snapshot.NoRank, heap: choice{"auto", []string{"auto", "on", "off"}}}
	var again, patch bool
	var switches []string
	cmd := &cobra.Command{
		Use:     "doctor [flags] -- COMMAND [ARGUMENT …] | doctor RUN [-- COMMAND …]",
		GroupID: groupFind,
		Short:   "prove by experiment why a Python program leaks",
		Long: `Records a command. If it leaks, doctor runs it again for each likely cause, and changes one
thing between steps, such as cutting a list to its newest items. If the growth is gone, the
cause is proven. If all losses are the same to the last bit, the change is safe. At the end
the command runs once more unchanged. doctor changes no files, but each run writes what the
command itself writes. More: ` + docsAddress + `doctor.md

With --patch it prints a patch of the likely line, runs a copy of the program with it, and
compares leak, losses, output, step time and peak with the unchanged run.

An undecided run is made longer if the command has {steps}. If no line is known, doctor
switches parts off: loader workers, hooks, torch.compile, autocast, and what --switch names.

With a recorded RUN it lists what it would try; --again tries it. With a RUN and a command
that has your fix, it runs the command and says whether the fix worked.

The exit code is 0 without a leak or if the fix worked, 1 with a leak, and 4 if only a
longer run can tell.`,
		Example: `  memdiag doctor --patch -- python train.py --steps 200
  memdiag doctor my-run`,
		RunE: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			switch {
			case len(args) == 0:
				return usagef(cmd, "neither a command after -- nor a recorded run")
			case dash < 0 && len(args) > 1:
				return usageOf(cmd, withHint(errors.New("one recorded run, or a command after --"), "memdiag doctor -- %s", strings.Join(secret.Words(args), " ")))
			case dash > 1 || dash > 0 && len(args) == dash:
				return usagef(cmd, "one recorded run before --, and the command with your fix after it")
			case dash >= 0 && again:
				return usagef(cmd, "--again is for a recorded run without a command")
			case dash > 0 && patch:
				return usagef(cmd, "--patch is for a program without your fix")
			}
			for _, name := range []string{"out", "every", "python-heap", "no-command"} {
				if dash < 0 && !again && cmd.Flags().Changed(name) {
					return usagef(cmd, "--%s needs something to record", name)
				}
			}
			l.options = diff.DefaultOptions()
			recorded := args
			if dash > 0 {
				recorded = args[:dash]
			}
			plain, err := l.plain(cmd.Context(), recorded, dash == 0)
			if plain == nil {
				return err
			}
			found := &doctor.Findings{Plain: plain}
			switch {
			case plain.Result == nil:
				found.Stopped = plain.Why
			case err != nil:
			case dash > 0:
				l.args = args[dash:]
				found, err = doctor.Mended(cmd.Context(), plain, l.run)
			default:
				run := l.run
				if dash < 0 && !again {
					run = nil
				} else if again {
					if l.args, err = againCommand(plain.Result); err != nil {
						return err
					}
				}
				given := doctor.Findings{Beside: beside()}
				if run == nil {
					given.Beside = nil
				}
				if slices.ContainsFunc(l.args, func(a string) bool { return strings.Contains(a, stepsWord) }) {
					given.Steps = l.steps
				}
				for _, words := range switches {
					given.Switches = append(given.Switches, doctor.Switch{Name: words, Args: strings.Fields(words)})
				}
				found, err = doctor.Examine(cmd.Context(), plain, run, given)
				if err == nil && patch && found.Leak != nil {
					err = l.patch(cmd.Context(), found, run)
				}
			}
			if plain.Result != nil {
				relativeTo(workingFolder(), plain.Result, nil)
			}
			env.talk.clear()
			page := doctor.PageOf(found, env.talk.program)
			write := page.Text
			if format.value == "json" {
				write = page.JSON
			}
			if err := errors.Join(err, write(env.stdout)); err != nil {
				return err
			}
			if dash < 0 && !again && len(found.Trials) > 0 {
				if _, err := againCommand(plain.Result); err == nil {
					env.talk.next("doctor --again", args...)
				}
			}
			return codeOf(found)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&patch, "patch", false, "print a patch of the likely line, and try it in a copy of the program; no file of yours is changed")
	flags.Int64Var(&l.steps, "steps", 200, "steps of the first run, if the command has {steps}; an undecided run is made longer")
	flags.StringArrayVar(&switches, "switch", nil, "`ARGUMENTS` that switch a part of the program off, such as '--num-workers 0', to try if no line is known; may be repeated")
	flags.BoolVar(&again, "again", false, "run the command of a recorded run again, here, to test its likely causes")
	l.flags(cmd, &format)
	env.knownFlag(cmd)
	return cmd
}

// codeOf is the exit code for the findings.
func codeOf(found *doctor.Findings) error {
	verdict := found.Verdict()
	if found.Mended {
		verdict = found.Fix.Verdict()
	}
	switch verdict {
	case diff.Leak:
		return &exitError{code: exitLeak}
	case diff.Inconclusive:
		return &exitError{code: exitInconclusive}
	}
	return nil
}

// againCommand is the command of a recorded run.
func againCommand(r *diff.Result) ([]string, error) {
	words := r.Run().Info.Command
	switch {
	case len(words) == 0:
		return nil, badInput(withHint(fmt.Errorf("%s: it names no command", r.Run().Path), "memdiag doctor -- COMMAND records it anew"))
	case slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, "***") }):
		return nil, badInput(withHint(fmt.Errorf("%s: a secret in its command was not stored", r.Run().Path), "memdiag doctor -- COMMAND records it anew"))
	}
	return words, nil
}

// plain is the unchanged run: recorded now, or read.
func (l *lab) plain(ctx context.Context, args []string, command bool) (*doctor.Run, error) {
	if command {
		l.args = args
		l.experiment = true
		return l.run(ctx, "plain", doctor.Change{})
	}
	run := &doctor.Run{Dir: filepath.Clean(args[0])}
	if err := l.judge(run); err != nil {
		return nil, err
	}
	return run, nil
}

// says is the purpose of a run, for a person who waits.
func says(name string, of doctor.Change) string {
	change := of.Intervention
	switch {
	case len(of.Files) > 0:
		return "with the patch, in a copy"
	case of.Steps > 0:
		return fmt.Sprintf("for %d steps", of.Steps)
	case name == "fixed":
		return "with your fix"
	case change != nil && change.Kind == record.Count:
		return "once more as it is"
	case change == nil:
		return "as it is"
	case change.Path == "":
		return "with " + string(change.Kind)
	}
	return fmt.Sprintf("with %s of %s", change.Kind, change.Path)
}

// patch makes a patch and tests it.
func (l *lab) patch(ctx context.Context, found *doctor.Findings, run doctor.Lab) error {
	python, err := l.python()
	if err != nil {
		return err
	}
	folder, err := os.Getwd()
	if err != nil {
		return err
	}
	l.env.talk.status("writing a patch")
	if err := found.MakePatch(ctx, python, folder); err != nil {
		return err
	}
	return found.TryPatch(ctx, run)
}
