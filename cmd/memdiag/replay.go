package main

import (
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/replay"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/files"
)

// usualSettings are tried if none are named.
var usualSettings = []string{"", "expandable_segments:True", "max_split_size_mb:128", "max_split_size_mb:512", "roundup_power2_divisions:4"}

func newReplayCommand(env *environment) *cobra.Command {
	format := textOrJSON()
	var output, device string
	var confs []string
	var limit sizeFlag
	cmd := &cobra.Command{
		Use:     "replay SNAPSHOT",
		GroupID: groupLook,
		Short:   "what other allocator settings would reserve: replay a snapshot's history",
		Long: `Replays the history of a PyTorch snapshot through a model of PyTorch's caching
allocator, under several settings. For each it says how much memory is reserved, how
much of that is stranded between live blocks, and how often the driver is called. To
check the model, it first replays the recorded settings, and compares the segments.`,
		Example: `  memdiag replay dump_snapshot.pickle
  memdiag replay dump_snapshot.pickle --alloc-conf expandable_segments:True --alloc-conf max_split_size_mb:256
  memdiag replay dump_snapshot.pickle --limit 80GiB`,
		Args:              takes(1, 1, "snapshot"),
		ValidArgsFunction: completeSnapshot,
		RunE: func(cmd *cobra.Command, args []string) error {
			json, err := textFormat(cmd, output, format)
			if err != nil {
				return err
			}
			chosen, err := deviceNumber(cmd, device)
			if err != nil {
				return err
			}
			if len(confs) == 0 {
				confs = usualSettings
			}
			settings := make([]replay.Settings, len(confs))
			for i, text := range confs {
				if settings[i], err = replay.Parse(text); err != nil {
					return usagef(cmd, "--alloc-conf %s", report.Printable(err.Error()))
				}
				if unknown := settings[i].Unknown; len(unknown) > 0 {
					return usagef(cmd, "--alloc-conf: the model has no rule for %s", report.Printable(strings.Join(unknown, ", ")))
				}
			}
			r, path, err := env.play(args[0], chosen, settings, snapshot.Bytes(limit))
			if err != nil {
				return err
			}
			if err := spare(cmd, output, path); err != nil {
				return err
			}
			text := report.TextOptions{}
			text.Width, text.Color = env.textShape(output)
			return env.result(output, false, func(w io.Writer) error {
				if json {
					return r.JSON(w)
				}
				return r.Text(w, text)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&confs, "alloc-conf", nil, "settings to replay, as in PYTORCH_CUDA_ALLOC_CONF; may be repeated (default a few usual ones)")
	flags.Var(&limit, "limit", "the most that the device may reserve, such as 80GiB (default what failed requests in the record tell, else no limit)")
	flags.StringVar(&device, "device", "", "the GPU, such as cuda:1 or 1 (default the one with most events)")
	flags.Var(&format, "format", "format on standard output: text or json")
	completeWords(cmd, "format", format.of)
	flags.StringVarP(&output, "output", "o", "", "write to `FILE`: .txt, or .json for JSON")
	return cmd
}

// deviceNumber is the index of a GPU named cuda:1 or 1; -1 for none.
func deviceNumber(cmd *cobra.Command, name string) (int, error) {
	if name == "" {
		return -1, nil
	}
	n, err := strconv.Atoi(strings.TrimPrefix(name, string(snapshot.CUDA)+":"))
	if err != nil || n < 0 {
		return 0, usagef(cmd, "--device %s: want a GPU, such as cuda:1", name)
	}
	return n, nil
}

// play replays a snapshot's record with its own settings and with others.
func (env *environment) play(name string, device int, settings []replay.Settings, limit snapshot.Bytes) (*report.Replay, string, error) {
	start, path, err := env.openSnapshotBy(name, func(o *files.Opener) { o.At, o.Record = snapshot.At{Kind: snapshot.AtStart}, true })
	if err != nil {
		return nil, "", err
	}
	end, _, err := env.openSnapshot(name)
	if err != nil {
		return nil, "", err
	}
	p, err := replay.New(start, end, device)
	if err != nil {
		return nil, "", badInput(withHint(err, "torch.cuda.memory._record_memory_history(\"all\") records allocations and frees"))
	}
	if limit > 0 {
		p.Limit = limit
	}
	r := &report.Replay{Snapshot: end, Player: p}
	if r.Recorded, r.Known, err = replay.Recorded(end); err != nil {
		return nil, "", badInput(withHint(err, "the snapshot's allocator_settings are not as PyTorch writes them"))
	}
	r.Fidelity = p.Check(r.Recorded)
	if !slices.ContainsFunc(settings, r.Recorded.Same) {
		settings = append([]replay.Settings{r.Recorded}, settings...)
	}
	r.Results = p.Play(settings)
	for i := range r.Results {
		r.Results[i].Recorded = r.Results[i].Settings.Same(r.Recorded)
	}
	return r, path, nil
}
