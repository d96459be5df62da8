package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// usageTemplate is what help prints below a command's description.
const usageTemplate = `Usage:
  {{.UseLine}}{{if .HasAvailableSubCommands}}{{$cmds := .Commands}}{{range $group := .Groups}}

{{.Title}}{{range $cmds}}{{if and (eq .GroupID $group.ID) .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if not .Groups}}

Commands:{{range $cmds}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableInheritedFlags}}

Flags of every command:
{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasHelpSubCommands}}

Topics:{{range .Commands}}{{if .IsAdditionalHelpTopicCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableSubCommands}}

More: {{.CommandPath}} help COMMAND{{if .HasHelpSubCommands}} or TOPIC{{end}}{{end}}
`

func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND or TOPIC]",
		Short: "help on a command or a topic",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usageOf(cmd, withHint(fmt.Errorf("no help on %q", strings.Join(args, " ")), "memdiag --help lists commands and topics"))
			}
			found.InitDefaultHelpFlag()
			found.InitDefaultVersionFlag()
			return found.Help()
		},
	}
}

// newExitCodesTopic is no command: cobra lists it under the help topics.
func newExitCodesTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "what the exit codes mean",
		Long: `Exit codes, the same for all commands:

  0  fine
  1  leak found (gate), or not fixed (verify)
  2  usage: the command line makes no sense
  3  bad or unreadable input
  4  inconclusive (gate, verify): the run is too short to tell
  5  anything else of memdiag's own, an interrupt included

A reader that closes the pipe early (memdiag show x | head) is no error.`,
	}
}
