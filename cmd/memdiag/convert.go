package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/native"
)

func newConvertCommand(env *environment) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "convert SNAPSHOT -o FILE",
		GroupID: groupMore,
		Short:   "write a snapshot in another format",
		Long: `Reads a snapshot of any format and writes it in the format of FILE's ending:
.memdiag and .json hold all that memdiag judges by; .pb.gz (pprof) and .folded
(folded stacks) hold live memory by stack. PyTorch's event history is lost, but
for the number of events and the step in which each block was allocated.`,
		Example: `  memdiag convert dump_snapshot.pickle -o snapshot_50.memdiag
  memdiag convert snapshot_50 -o live.pb.gz   # for go tool pprof`,
		Args:              takes(1, 1, "snapshot"),
		ValidArgsFunction: completeSnapshot,
		RunE: func(cmd *cobra.Command, args []string) error {
			write, err := snapshotFormat(cmd, output)
			if err != nil {
				return err
			}
			s, path, err := env.openSnapshot(args[0])
			if err != nil {
				return err
			}
			if err := spare(cmd, output, path); err != nil {
				return err
			}
			if err := env.result(output, false, func(w io.Writer) error { return write(w, s) }); err != nil {
				return err
			}
			env.wrote(output)
			return nil
		},
	}
	env.symbolsFlag(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "", "write to `FILE`: .memdiag, .json, .pb.gz or .folded")
	return cmd
}

func snapshotFormat(cmd *cobra.Command, output string) (func(io.Writer, *snapshot.Snapshot) error, error) {
	switch {
	case output == "":
		return nil, usagef(cmd, "no output: name a file with -o")
	case strings.HasSuffix(output, native.Ending):
		return native.Encode, nil
	case strings.HasSuffix(output, ".json"):
		return report.SnapshotJSON, nil
	case strings.HasSuffix(output, ".pb.gz"):
		return func(w io.Writer, s *snapshot.Snapshot) error { return report.Pprof(w, report.LiveProfile(s)) }, nil
	case strings.HasSuffix(output, ".folded"):
		return func(w io.Writer, s *snapshot.Snapshot) error { return report.Folded(w, report.LiveProfile(s)) }, nil
	}
	return nil, usagef(cmd, "%s: a snapshot is written as .memdiag, .json, .pb.gz or .folded", output)
}
