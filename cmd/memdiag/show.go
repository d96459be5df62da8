package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/report"
)

func newShowCommand(env *environment) *cobra.Command {
	format := textOrJSON()
	var output string
	text := report.TextOptions{}
	cmd := &cobra.Command{
		Use:     "show SNAPSHOT | show RUN",
		GroupID: groupLook,
		Short:   "one snapshot: a first verdict, meters, where the bytes are, fragmentation",
		Long: `Shows one snapshot, of any format that memdiag reads: a first verdict where the
file tells when blocks were born, the allocator's meters, the stacks that hold
most, how old their blocks are, and what pins segments. Of a run, the last.`,
		Example: `  memdiag show snapshot_50
  memdiag show my-run
  memdiag show dump_snapshot.pickle --top 20`,
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
			s, path, err := env.openLast(args[0])
			if err != nil {
				return err
			}
			if err := spare(cmd, output, path); err != nil {
				return err
			}
			if !json {
				workingFolder().Snapshot(s)
			}
			text.Width, text.Color = env.textShape(output)
			text.Run = env.runUpTo(s, path)
			return env.result(output, false, func(w io.Writer) error {
				if json {
					return report.ShowJSON(w, s, text.Top, text.Run)
				}
				return report.Show(w, s, text)
			})
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&text.Top, "top", 10, "how many stacks to list")
	flags.Var(&format, "format", "format on standard output: text or json")
	completeWords(cmd, "format", format.of)
	flags.StringVarP(&output, "output", "o", "", "write to `FILE`: .txt, or .json for JSON")
	return cmd
}
