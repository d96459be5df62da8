package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/budget"
	"github.com/memdiag/memdiag/snapshot"
)

// Live is an event of a watched run.
type Live struct {
	Kind LiveKind
	Time time.Time
	Run  *snapshot.Run
	Rank int          // snapshot.NoRank if the run has no ranks
	Said string       // the text, for events without a finding
	In   *diff.Result // the result it is about; nil with fewer than three snapshots
	// Finding is what is suspected, leaks, or did leak; nil for other kinds. Fingerprint is the one that baselines use.
	Finding     *diff.Finding
	Fingerprint string
	// Process is the kind of process, such as "loader worker", or "" for the recorded one. Device is the device of the memory. Together
	// with Rank and Fingerprint they identify the leak.
	Process, Device string
	Since           snapshot.Mark   // when it was first suspected
	Budget          *budget.Outcome // for LiveOverBudget and LiveWithinBudget; else nil
}

// LiveKind is the kind of an event.
type LiveKind string

// The kinds.
const (
	LiveBegun     LiveKind = "watching"
	LiveSuspected LiveKind = "possible leak"
	LiveLeak      LiveKind = "leak"
	LiveOver      LiveKind = "leak over"
	LiveWithdrawn LiveKind = "withdrawn"
	LiveGrowth    LiveKind = "growth"
	LiveUnread    LiveKind = "not read"
	LiveEnded     LiveKind = "ended"

	LiveOverBudget   LiveKind = "over budget"
	LiveWithinBudget LiveKind = "within budget"
)

// Alarm reports whether an event belongs to an alarm, and whether it begins or ends it. All events of one alarm have the same name.
func (l *Live) Alarm() (name string, begins, is bool) {
	switch l.Kind {
	case LiveLeak, LiveOver:
		return strings.TrimSpace(strings.Join([]string{l.Fingerprint, l.Device, l.Process}, " ")), l.Kind == LiveLeak, true
	case LiveOverBudget, LiveWithinBudget:
		return l.Budget.Budget.String() + " " + l.Budget.Of, l.Kind == LiveOverBudget, true
	}
	return "", false, false
}

// Lines formats an event for a person; the first line says all that matters. Paths are relative to here.
func (l *Live) Lines(here Folder) []string {
	var lines []string
	for i, line := range l.lines() {
		if i > 0 {
			line = "  " + line
		}
		lines = append(lines, here.Text(unglued(line)))
	}
	return lines
}

func (l *Live) lines() []string {
	head := l.Time.Format("15:04:05") + " "
	if step := l.step(); step != snapshot.NoStep {
		head += "step " + grouped(step) + " "
	}
	if l.Rank != snapshot.NoRank {
		head += fmt.Sprintf("rank %d ", l.Rank)
	}
	head += string(l.Kind) + ": "
	f := l.Finding
	if f == nil {
		return []string{head + brief(l.Said)}
	}
	if l.Kind == LiveOver || l.Kind == LiveWithdrawn {
		return []string{head + "the growth " + atPlace(f) + " has stopped"}
	}
	text := head + clauseOf(f)
	full := fullText(f.RunsOut)
	if l.Kind == LiveSuspected {
		if full != "" {
			text += "; at this pace " + full
		}
		return []string{text + "; too early to tell whether it continues"}
	}
	if full != "" {
		text += "; " + full
	}
	lines := []string{text}
	for line := range strings.Lines(inShort(f)) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

// Unexplained is growth of a process that no recorded stack explains.
func Unexplained(e *diff.Reserve) string {
	if e.Processes != nil {
		return e.Clause()
	}
	if at := e.Line(); at != nil {
		return "the process grows by " + strings.TrimPrefix(bytesRate(e.Rate), "+") + ", while " + spot(*at) + " ran"
	}
	return "the process grows by " + strings.TrimPrefix(bytesRate(e.Rate), "+") + ", and no recorded line explains it"
}

// fullText says when memory is full; "" if that is unknown or far away.
func fullText(at *diff.Forecast) string {
	switch {
	case at == nil || at.Beyond:
		return ""
	case at.Step == snapshot.NoStep:
		value, _, _ := spansWithin(at)
		return "memory is full in " + value
	}
	step, _ := rounded(at.Step, at.Low, at.High)
	text := "memory is full at step " + grouped(step)
	if at.After > 0 {
		value, _, _ := spansWithin(at)
		text += ", in " + value
	}
	return text
}

func (l *Live) step() int64 {
	if n := len(l.Run.Snapshots); n > 0 {
		return l.Run.Snapshots[n-1].Mark.Step
	}
	return snapshot.NoStep
}

type liveJSON struct {
	SchemaVersion int             `json:"schema_version"`
	Event         string          `json:"event"`
	Text          string          `json:"text"` // for chats
	Time          time.Time       `json:"time"`
	Run           string          `json:"run"`
	Host          string          `json:"host,omitempty"`
	Rank          *int            `json:"rank,omitempty"`
	Step          *int64          `json:"step,omitempty"`
	Process       *childOfJSON    `json:"process,omitempty"` // absent for the process that was recorded first
	Fingerprint   string          `json:"fingerprint,omitempty"`
	Device        string          `json:"device,omitempty"`
	SinceStep     *int64          `json:"since_step,omitempty"`
	Finding       *findingJSON    `json:"finding,omitempty"`
	Budget        *gateBudgetJSON `json:"budget,omitempty"`
}

// JSON writes an event on one line. Its text key has Lines.
func (l *Live) JSON(w io.Writer, here Folder) error {
	out := liveJSON{
		SchemaVersion: schemaVersion, Event: strings.ReplaceAll(string(l.Kind), " ", "_"), Text: strings.Join(l.Lines(here), "\n"), Time: l.Time,
		Run: l.Run.Path, Host: l.Run.Info.Host, Fingerprint: l.Fingerprint, Device: l.Device,
	}
	if l.Rank != snapshot.NoRank {
		out.Rank = &l.Rank
	}
	if step := l.step(); step != snapshot.NoStep {
		out.Step = &step
	}
	if l.Budget != nil {
		of := RankBudget{l.Rank, *l.Budget}
		held := of.json()
		out.Budget = &held
	}
	if l.Finding != nil {
		in := l.In
		if c := l.Finding.Child; c != nil {
			in, out.Process = c.Result, childOf(l.Finding)
		}
		finding := findingOf(in, l.Finding)
		out.Finding = &finding
		if step := l.Since.Step; step != snapshot.NoStep {
			out.SinceStep = &step
		}
	}
	return json.NewEncoder(w).Encode(out)
}

// LiveStatus is the state of a run in one line.
func LiveStatus(run *snapshot.Run, r *diff.Result, suspected, leaks int) string {
	n := len(run.Snapshots)
	if n == 0 {
		return "no snapshot yet"
	}
	last := run.Snapshots[n-1]
	var parts []string
	if last.Mark.Step != snapshot.NoStep {
		parts = append(parts, "step "+grouped(last.Mark.Step))
	} else {
		parts = append(parts, count(int64(n), "snapshot"))
	}
	if r != nil {
		live := liveBytes(r)
		parts = append(parts, "live "+snapshot.Bytes(live[len(live)-1]).String()+" "+sparkline(r.Series.Axis.X, live))
	}
	switch {
	case leaks > 0:
		parts = append(parts, count(int64(leaks), "leak"))
	case suspected > 0:
		parts = append(parts, count(int64(suspected), "possible leak"))
	default:
		parts = append(parts, "no leak")
	}
	return strings.Join(parts, " · ")
}

// liveBytes is the live memory of all devices at each mark.
func liveBytes(r *diff.Result) []float64 {
	sums := make([]float64, len(r.Series.Marks))
	for _, meters := range r.Series.Meters {
		for i, m := range meters {
			sums[i] += float64(m.Allocated)
		}
	}
	return sums
}

// sparkline draws values, taken at the steps or times x, as bars from the lowest to the highest. There are at most 16 bars, and each
// covers the same length of x, since snapshots become rarer as a run goes on.
func sparkline(x, values []float64) string {
	const bars, sparks = "▁▂▃▄▅▆▇█", 16
	low, high := slices.Min(values), slices.Max(values)
	out := make([]rune, min(len(values), sparks))
	last, seen := len(x)-1, 0
	for i := range out {
		until := x[0] + (x[last]-x[0])*float64(i+1)/float64(len(out))
		for seen < last && x[seen+1] <= until {
			seen++
		}
		at := 0.
		if high > low {
			at = (values[seen] - low) / (high - low)
		}
		out[i] = []rune(bars)[int(at*7)]
	}
	return string(out)
}
