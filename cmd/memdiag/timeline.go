package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/files"
)

func newTimelineCommand(env *environment) *cobra.Command {
	var output string
	var device string
	cmd := &cobra.Command{
		Use:     "timeline SNAPSHOT",
		GroupID: groupLook,
		Short:   "draw a GPU's memory over time: each block from its allocation to its free",
		Long: `Draws the history of a PyTorch snapshot as one HTML page that needs neither server nor
network. Each block is a band from its allocation to its free. The page shows what was
live at the peak or at any other moment, by call site and by call, with steps and failed
requests. Select a range to see what was allocated in it.

With -o FILE.json it writes Chrome's trace events, for Perfetto.`,
		Example: `  memdiag timeline dump_snapshot.pickle
  memdiag timeline dump_snapshot.pickle --device 1 -o peak.html
  memdiag timeline dump_snapshot.pickle -o trace.json   # for Perfetto`,
		Args:              takes(1, 1, "snapshot"),
		ValidArgsFunction: completeSnapshot,
		RunE: func(cmd *cobra.Command, args []string) error {
			ending := strings.ToLower(filepath.Ext(output))
			if output != "-" && ending != ".html" && ending != ".htm" && ending != ".json" {
				return usagef(cmd, "%s: a timeline is a .html, or a .json of Chrome's trace events", output)
			}
			s, path, err := env.openTimeline(args[0])
			if err != nil {
				return err
			}
			if err := spare(cmd, output, path); err != nil {
				return err
			}
			line, err := chosenTimeline(s, device)
			if err != nil {
				return err
			}
			workingFolder().Snapshot(s)
			about := report.About{Name: filepath.Base(path), Version: version()}
			if err := env.result(output, false, func(w io.Writer) error {
				if ending == ".json" {
					return report.ChromeTrace(w, s, line)
				}
				return report.TimelinePage(w, s, line, about)
			}); err != nil {
				return err
			}
			env.wrote(output)
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&device, "device", "", "the GPU, such as cuda:1 or 1 (default the one with the highest peak)")
	flags.StringVarP(&output, "output", "o", "timeline.html", "write to `FILE`: .html, or .json for Perfetto; - for HTML on standard output")
	return cmd
}

// openTimeline opens a snapshot with the lives of the blocks in its record.
func (env *environment) openTimeline(name string) (*snapshot.Snapshot, string, error) {
	return env.openSnapshotBy(name, func(o *files.Opener) { o.Timeline = true })
}

// chosenTimeline is the timeline of a GPU; by default the one with the highest peak.
func chosenTimeline(s *snapshot.Snapshot, device string) (*snapshot.Timeline, error) {
	var best *snapshot.Timeline
	number := strings.TrimPrefix(device, string(snapshot.CUDA)+":")
	for _, line := range s.Timelines {
		if strconv.Itoa(s.Devices[line.Device].Index) == number {
			return line, nil
		}
		if best == nil || line.Peak > best.Peak {
			best = line
		}
	}
	if device != "" {
		return nil, badInput(fmt.Errorf("the snapshot has no history of %s", report.Printable(device)))
	}
	return best, nil
}
