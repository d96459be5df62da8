package main

import (
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/report"
)

func newShowCommand(env *environment) *cobra.Command {
	format := textOrJSON()
	var output string
	text := report.TextOptions{}
	cmd := &cobra.Command{
		Use:     "show SNAPSHOT",
		GroupID: groupLook,
		Short:   "one snapshot: meters, where the bytes are, ages, fragmentation",
		Long: `Shows one snapshot of ours, or one that PyTorch wrote: the allocator's meters,
the stacks that hold most, how old their blocks are, and what pins segments.`,
		Example: `  memdiag show snapshot_50
  memdiag show dump_snapshot.pickle --top 20`,
		Args: takes(1, 1, "snapshot"),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := openSnapshot(args[0])
			if err != nil {
				return err
			}
			text.Width, text.Color = env.textShape(output)
			return env.result(output, false, func(w io.Writer) error {
				if format.value == "json" || filepath.Ext(output) == ".json" {
					return report.ShowJSON(w, s, text.Top)
				}
				return report.Show(w, s, text)
			})
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&text.Top, "top", 10, "how many stacks to list")
	flags.Var(&format, "format", "format on standard output: text or json")
	flags.StringVarP(&output, "output", "o", "", "write to `FILE`; .json gives JSON")
	return cmd
}
