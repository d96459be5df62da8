package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// docsAddress is where the docs are; an installed program comes without them.
const docsAddress = "https://github.com/memdiag/memdiag/blob/main/docs/"

// usageTemplate is printed below a command's description in help.
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

More: {{.Root.Name}} help {{if .HasParent}}{{.Name}} {{end}}COMMAND{{if .HasHelpSubCommands}} or TOPIC{{end}}{{end}}
`

func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND or TOPIC]",
		Short: "help on a command or a topic",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) (names []string, _ cobra.ShellCompDirective) {
			if of, rest, err := cmd.Root().Find(args); err == nil && len(rest) == 0 {
				for _, c := range of.Commands() {
					if (c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand()) && strings.HasPrefix(c.Name(), typed) {
						names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
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

// newExitCodesTopic is not a command: cobra lists it under the help topics.
func newExitCodesTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "what the exit codes mean",
		Long: `Exit codes, the same for all commands:

  0  fine
  1  leak found or budget broken (gate, watch), or not fixed (verify)
  2  wrong command line
  3  bad or unreadable input
  4  inconclusive (gate, watch, verify)
  5  any other failure of memdiag, including an interrupt

A reader that closes the pipe early (memdiag show x | head) is no error.`,
	}
}

func newFormatsTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "formats",
		Short: "what memdiag reads, and what makes it",
		Long: `What memdiag reads, whatever a file's name, and what makes it. Blocks:

  memdiag          memdiag record -- COMMAND
  PyTorch          torch.cuda.memory._dump_snapshot("snapshot_50.pickle")
  torch.profiler   profile(profile_memory=True, with_stack=True), later
                   export_chrome_trace("trace_50.json.gz")

Totals by stack:

  JAX              jax.profiler.save_device_memory_profile("jax_50.pb.gz")
  tracemalloc      tracemalloc.take_snapshot().dump("dump_50.pickle")
  memray           memray transform csv --leaks -o memray_50.csv RECORDING
  Go               curl -o heap_50.pb.gz HOST/debug/pprof/heap
  gperftools       go tool pprof -proto PROGRAM heap.0050.heap > heap_50.pb.gz
  jemalloc         MALLOC_CONF=prof:true,prof_final:true PROGRAM
  heaptrack        heaptrack PROGRAM
  heaptrack_print  heaptrack_print --print-leaks 1 RECORDING > heaptrack_50.txt
  massif           valgrind --tool=massif --detailed-freq=1 --fullpath-after= PROGRAM
  DHAT             valgrind --tool=dhat --fullpath-after= PROGRAM
  others           a heap profile of pprof's, profile.proto

Several files are a run, in a folder or named one after the other; the number in
a name is its step. gzip and zstd are unpacked.`,
	}
}
