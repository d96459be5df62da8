package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// Groups of commands in help.
const (
	groupFind = "find"
	groupLook = "look"
	groupMore = "more"
)

// commands lists every subcommand; one file each, newXxxCommand.
func commands(env *environment) []*cobra.Command {
	return []*cobra.Command{
		newDemoCommand(env),
		newRecordCommand(env),
		newAttachCommand(env),
		newDiffCommand(env),
		newGateCommand(env),
		newVerifyCommand(env),
		newFleetCommand(env),
		newDoctorCommand(env),
		newLintCommand(env),
		newSoakCommand(env),
		newWatchCommand(env),
		newExplainCommand(env),
		newShowCommand(env),
		newTimelineCommand(env),
		newReplayCommand(env),
		newReportCommand(env),
		newPlotCommand(env),
		newFlameCommand(env),
		newViewCommand(env),
		newConvertCommand(env),
		newWorkloadsCommand(env),
		newDevicesCommand(env),
		newBenchCommand(env),
		newMCPCommand(env),
		newManCommand(env),
		newPythonPathCommand(env),
		newLicensesCommand(env),
		newVersionCommand(env),
		newExitCodesTopic(),
		newFormatsTopic(),
	}
}

func newRootCommand(env *environment) *cobra.Command {
	color := colorAuto
	root := &cobra.Command{
		Use:   "memdiag COMMAND",
		Short: "find memory leaks of training runs",
		Long: `memdiag finds memory leaks of training runs. It compares snapshots of device
memory by the stack that allocated it, and says what leaks, how fast and why.`,
		Example: `  memdiag demo
  memdiag diff run`,
		Version:       version(),
		Args:          knownCommand,
		SilenceErrors: true,
		// Two wrong letters are a typing error; more are another word.
		SuggestionsMinimumDistance: 2,
		SilenceUsage:               true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usagef(cmd, "no command given")
		},
	}
	root.AddGroup(
		&cobra.Group{ID: groupFind, Title: "Find leaks:"},
		&cobra.Group{ID: groupLook, Title: "Look at memory:"},
		&cobra.Group{ID: groupMore, Title: "More:"},
	)
	root.AddCommand(commands(env)...)
	root.SetHelpCommand(newHelpCommand())
	root.SetHelpCommandGroupID(groupMore)
	root.SetCompletionCommandGroupID(groupMore)
	root.SetUsageTemplate(usageTemplate)
	root.SetVersionTemplate("memdiag {{.Version}}\n")
	root.SetOut(env.stdout)
	root.SetErr(env.child.err)
	root.InitDefaultCompletionCmd() // it uses the output as set now
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		completion.Use = "completion SHELL"
	}

	flags := root.PersistentFlags()
	flags.BoolVarP(&env.talk.quiet, "quiet", "q", false, "print data and errors only")
	flags.Var(&color, "color", "color the output: auto, always or never")
	flags.Var((*sizeFlag)(&env.opener.MaxUnpacked), "max-unpacked", "limit on the unpacked size of compressed files, such as 2GiB; 0 is automatic")
	completeWords(root, "color", []string{string(colorAuto), string(colorAlways), string(colorNever)})
	prepare(root, func() {
		env.out = newTerminal(env.child.out, color, env.getenv)
		env.talk.term = newTerminal(env.child.err, color, env.getenv)
	})
	return root
}

// commandError marks an error that a command returned, to distinguish it from cobra's errors about arguments, which are plain.
type commandError struct{ err error }

func (e *commandError) Error() string { return e.err.Error() }

// prepare makes cmd and all commands below it run before, mark their errors, and list flags in the order of their definition, which is
// by importance.
func prepare(cmd *cobra.Command, before func()) {
	cmd.Flags().SortFlags = false
	cmd.PersistentFlags().SortFlags = false
	cmd.DisableFlagsInUseLine = true
	if cmd.HasSubCommands() && !cmd.Runnable() {
		cmd.Args = knownCommand
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	if inner := cmd.RunE; inner != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			before()
			own := args
			if n := cmd.ArgsLenAtDash(); n >= 0 {
				own = args[:n]
			}
			if slices.Contains(own, "") { // no name is the newest run, which a gate must not judge by mistake
				return usagef(cmd, "an empty argument; a variable may be unset")
			}
			if err := inner(cmd, args); err != nil {
				return &commandError{err}
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		prepare(sub, before)
	}
}

// knownCommand returns an error for a word that should be a command and is none.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("unknown command %q", args[0])
	name := cmd.CommandPath()
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return withHint(err, "did you mean %s %s?", name, strings.Join(near, " or "+name+" "))
	}
	return withHint(err, "%s --help lists the commands", name)
}

// unlimited is the high limit of takes for a command without a limit.
const unlimited = -1

// takes checks the number of arguments; what names them: takes(2, unlimited, "snapshots").
func takes(low, high int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= low && (high == unlimited || len(args) <= high) {
			return nil
		}
		want := fmt.Sprintf("%d to %d", low, high)
		switch high {
		case 0:
			want = "no"
		case low:
			want = strconv.Itoa(low)
		case unlimited:
			want = fmt.Sprintf("%d or more", low)
		}
		return fmt.Errorf("%s takes %s %s; got %d", cmd.Name(), want, what, len(args))
	}
}
