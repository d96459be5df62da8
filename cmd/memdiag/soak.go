package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/doctor"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
)

// soaked is the result of a soak.
type soaked struct {
	SchemaVersion int            `json:"schema_version"`
	Cycles        []doctor.Cycle `json:"cycles"`
	Across        []string       `json:"across,omitempty"` // what grows from cycle to cycle
	Stopped       string         `json:"stopped,omitempty"`
}

// mostFailures in a row end a soak: the command does not start any more.
const mostFailures = 3

func newSoakCommand(env *environment) *cobra.Command {
	format := choice{"text", []string{"text", "json"}}
	l := &lab{env: env, rank: snapshot.NoRank, heap: choice{"auto", []string{"auto", "on", "off"}}, mayFail: true}
	var cycles int
	var length time.Duration
	var budgets budgetFlags
	cmd := &cobra.Command{
		Use:     "soak [flags] -- COMMAND [ARGUMENT …]",
		GroupID: groupFind,
		Short:   "run a command again and again, for hours, and judge each cycle",
		Long: `Runs a command again and again. Each cycle is recorded and judged as by gate, with the
budgets that you set. soak also reports shared memory that a cycle leaves behind, and peaks
that rise from cycle to cycle. MEMDIAG_CYCLE holds the number of the cycle, from 1 on, so
that the command can resume from its checkpoint. The exit code is 1 if a cycle leaks, breaks
a budget, fails or leaves memory behind, and 4 if a cycle is undecided.`,
		Example: `  memdiag soak --for 8h --max-peak process=12GiB -- python train.py --resume
  memdiag soak --cycles 10 -o soak -- python train.py`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef(cmd, "no command after --")
			}
			if cycles < 1 {
				return usagef(cmd, "--cycles is at least 1")
			}
			if length < 0 {
				return usagef(cmd, "--for must not be negative")
			}
			if length > 0 && !cmd.Flags().Changed("cycles") {
				cycles = math.MaxInt // the time limit ends it
			}
			l.args, l.options = args, diff.DefaultOptions()
			found, err := l.soak(cmd.Context(), cycles, length, budgets)
			env.talk.clear()
			if found == nil {
				return err
			}
			if wrote := found.write(env.stdout, format.value); wrote != nil {
				return wrote
			}
			return errors.Join(err, found.code())
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&cycles, "cycles", 10, "how many times the command runs; with --for, at most")
	flags.DurationVar(&length, "for", 0, "begin no cycle after this `TIME`, such as 8h")
	budgets.flags(cmd, nil)
	l.flags(cmd, &format)
	return cmd
}

// soak runs the cycles. An interrupt ends it, and returns the results so far.
func (l *lab) soak(ctx context.Context, cycles int, length time.Duration, budgets budgetFlags) (*soaked, error) {
	found := &soaked{SchemaVersion: 1, Cycles: []doctor.Cycle{}}
	began, failures := l.env.now(), 0
	for n := 1; n <= cycles && (length == 0 || l.env.now().Sub(began) < length); n++ {
		before := sharedFiles()
		l.environment = append(l.environment[:0], fmt.Sprintf("MEMDIAG_CYCLE=%d", n))
		run, err := l.run(ctx, fmt.Sprintf("cycle-%03d", n), doctor.Change{})
		if err != nil {
			if len(found.Cycles) == 0 && run == nil {
				return nil, err
			}
			found.Stopped, found.Across = told(ctx, err).Error(), doctor.Across(found.Cycles)
			return found, err
		}
		c, err := doctor.CycleOf(n, run, budgets, settled(ctx, before), l.env.now())
		if err != nil {
			return nil, err
		}
		found.Cycles = append(found.Cycles, c)
		l.env.talk.say("cycle %d: %s, %.1f s, peak %s", n, c.Verdict, c.Seconds, snapshot.Bytes(c.Peak))
		if failures++; c.Verdict != doctor.CycleFailed {
			failures = 0
		}
		if failures == mostFailures {
			found.Stopped = fmt.Sprintf("%d cycles in a row failed", failures)
			break
		}
	}
	found.Across = doctor.Across(found.Cycles)
	return found, nil
}

const sharedFolder = "/dev/shm"

// sharedFiles are the names of the files in shared memory; none on systems without a folder for them.
func sharedFiles() map[string]bool {
	names := make(map[string]bool)
	entries, _ := os.ReadDir(sharedFolder) // what was read before an error is used
	for _, e := range entries {
		names[e.Name()] = true
	}
	return names
}

// leftIn is the size of the shared memory files that did not exist before.
func leftIn(before map[string]bool) (sum snapshot.Bytes) {
	for name := range sharedFiles() {
		if info, err := os.Lstat(filepath.Join(sharedFolder, name)); err == nil && info.Mode().IsRegular() && !before[name] {
			sum += snapshot.Bytes(info.Size())
		}
	}
	return sum
}

// settled is leftIn once no more files are removed: Python's resource tracker removes files shortly after its program ends.
func settled(ctx context.Context, before map[string]bool) snapshot.Bytes {
	for range 10 {
		if leftIn(before) == 0 || ctx.Err() != nil {
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	return leftIn(before)
}

// code is the exit code.
func (s *soaked) code() error {
	code := exitFine
	for _, c := range s.Cycles {
		switch c.Verdict {
		case doctor.CycleFine:
		case doctor.CycleUndecided:
			code = max(code, exitInconclusive)
		default:
			return &exitError{code: exitLeak}
		}
	}
	if len(s.Across) > 0 {
		return &exitError{code: exitLeak}
	}
	if code != exitFine {
		return &exitError{code: code}
	}
	return nil
}

func (s *soaked) write(w io.Writer, format string) error {
	if format == "json" {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(s)
	}
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "cycle\tverdict\ttook\tpeak\tgrowth\tleft behind\t") // a builder takes all
	for _, c := range s.Cycles {
		_, _ = fmt.Fprintf(t, "%d\t%s\t%.1f s\t%s\t%s\t%s\t\n", c.Number, c.Verdict, c.Seconds, measuredText(c.Peak), measuredText(c.Growth), snapshot.Bytes(c.Left))
	}
	_ = t.Flush()
	for _, c := range s.Cycles {
		for _, why := range c.Why {
			fmt.Fprintf(&b, "cycle %d: %s\n", c.Number, report.Printable(why))
		}
	}
	for _, text := range s.Across {
		b.WriteString("over all cycles: " + text + "\n")
	}
	if s.Stopped != "" {
		b.WriteString("not complete: " + report.Printable(s.Stopped) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func measuredText(n int64) string {
	if n == 0 {
		return "-"
	}
	return snapshot.Bytes(n).String()
}
