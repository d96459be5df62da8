package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

// schemaVersion grows when a key of the JSON changes its meaning or goes away; new
// keys do not change it.
const schemaVersion = 1

type resultJSON struct {
	SchemaVersion int           `json:"schema_version"`
	Summary       string        `json:"summary"`
	Rule          string        `json:"rule"`
	First         markJSON      `json:"first"`
	Last          markJSON      `json:"last"`
	Intermediate  int           `json:"intermediate_snapshots"`
	Growth        tallyJSON     `json:"growth"`
	Totals        []accountJSON `json:"totals"`
	Devices       []changeJSON  `json:"devices"`
	Findings      []findingJSON `json:"findings"`
	Rows          []rowJSON     `json:"rows"`
	Ranks         *ranksJSON    `json:"ranks,omitempty"`
	// Least is the smallest leak that the run could have shown, one block in so many
	// steps, or of a run by the clock LeastTime in so many seconds; 0 for none.
	Least     int64   `json:"smallest_leak_every_steps"`
	LeastTime float64 `json:"smallest_leak_every_seconds,omitempty"`
	// LeastSample is what comes then in place of a block, where allocations were sampled.
	LeastSample int64         `json:"smallest_leak_sample_bytes,omitempty"`
	Reserves    []reserveJSON `json:"reserves"`
	Children    []childJSON   `json:"children,omitempty"`
	// OutOfMemory is the last request for memory that failed; absent where none did.
	OutOfMemory *refusedJSON `json:"out_of_memory,omitempty"`
	PeakByInput []demandJSON `json:"peak_by_input,omitempty"`
	AfterWarmUp []bandsJSON  `json:"after_warm_up,omitempty"` // of devices with points enough
	NotSeen     []string     `json:"not_seen"`                // what no verdict speaks of
	Notes       []string     `json:"notes"`
	Known       []string     `json:"known_leaks,omitempty"` // of libraries
}

// childJSON is another process of the command that leaks.
type childJSON struct {
	childOfJSON
	Findings []findingJSON `json:"findings"`
}

// childOfJSON is the process that stands for those of its kind that leak.
type childOfJSON struct {
	Role    string `json:"role"`
	PID     int    `json:"pid,omitempty"`
	Machine string `json:"machine,omitempty"`
	Alike   int    `json:"alike"`
	Of      int    `json:"of"`
}

// reserveJSON is a device of which a meter grew while its live memory did not.
type reserveJSON struct {
	Device string `json:"device"`
	Meter  string `json:"meter"` // as cause.Meter
	Growth int64  `json:"meter_growth_bytes"`
	// Rate is that of the growth; of the process itself alone.
	Rate    *reserveRateJSON `json:"rate,omitempty"`
	Live    int64            `json:"live_growth_bytes"`
	Free    int64            `json:"free_bytes"`
	Largest int64            `json:"largest_free_bytes"`
	Trim    int64            `json:"trim_bytes"`
	Cause   string           `json:"cause,omitempty"`
	// Holder keeps what is likely to have grown.
	Holder *holderJSON `json:"holder,omitempty"`
	// Processes are those that grew, where they are others than the recorded one.
	Processes *processesJSON `json:"processes,omitempty"`
}

// processesJSON are processes of the command in which nothing was recorded.
type processesJSON struct {
	Role     string `json:"role"`
	PID      int    `json:"pid,omitempty"`
	Alike    int    `json:"alike"`
	Of       int    `json:"of"`
	Shared   bool   `json:"shared,omitempty"`
	Segments int64  `json:"segments,omitempty"`
}

type reserveRateJSON struct {
	Unit  string    `json:"unit"`
	Bytes slopeJSON `json:"bytes"`
}

// markJSON leaves out what is unknown.
type markJSON struct {
	Step     *int64 `json:"step,omitempty"`
	Epoch    *int64 `json:"epoch,omitempty"`
	Phase    string `json:"phase,omitempty"`
	Rank     *int   `json:"rank,omitempty"`
	Producer string `json:"producer"`
}

type tallyJSON struct {
	Blocks    *int64 `json:"blocks,omitempty"`
	Bytes     int64  `json:"bytes"`
	Requested int64  `json:"requested_bytes"`
}

type accountJSON struct {
	Name  string `json:"name"`
	Sites int    `json:"sites"`
	tallyJSON
}

type changeJSON struct {
	Device string      `json:"device"`
	Name   string      `json:"name,omitempty"`
	Limit  *int64      `json:"limit_bytes,omitempty"`
	First  *metersJSON `json:"first,omitempty"`
	Last   metersJSON  `json:"last"`
}

type metersJSON struct {
	Requested int64  `json:"requested_bytes"`
	Allocated int64  `json:"allocated_bytes"`
	Active    *int64 `json:"active_bytes,omitempty"`
	Reserved  *int64 `json:"reserved_bytes,omitempty"`
	Driver    *int64 `json:"driver_bytes,omitempty"`
}

type frameJSON struct {
	Function string `json:"function"`
	File     string `json:"file"`
	Line     *int   `json:"line,omitempty"`
}

type rowJSON struct {
	Hash    string    `json:"stack_hash"`
	Device  string    `json:"device"`
	Where   string    `json:"where"`
	Verdict string    `json:"verdict,omitempty"` // of the finding that it is part of
	Before  tallyJSON `json:"before"`
	After   tallyJSON `json:"after"`
	Growth  tallyJSON `json:"growth"`
	Born    tallyJSON `json:"born"`
	Died    tallyJSON `json:"died"`
}

type findingJSON struct {
	Verdict  string        `json:"verdict"`
	Evidence string        `json:"evidence"`
	Reasons  []string      `json:"reasons"`
	Headline *frameJSON    `json:"headline"`
	Frames   []frameJSON   `json:"frames"`
	Label    string        `json:"label,omitempty"`
	Hash     string        `json:"stack_hash"`
	Device   string        `json:"device"`
	Live     tallyJSON     `json:"live"`
	Growth   tallyJSON     `json:"growth"`
	Born     tallyJSON     `json:"born"`
	Died     tallyJSON     `json:"died"`
	Estimate bool          `json:"estimated,omitempty"` // some steps or allocations were recorded, which stand for the others
	Rate     *rateJSON     `json:"rate"`
	Owners   []string      `json:"owners"`
	Holder   *holderJSON   `json:"holder,omitempty"`
	Cause    *causeJSON    `json:"cause,omitempty"`
	Pace     *paceJSON     `json:"pace,omitempty"`
	Shape    string        `json:"shape,omitempty"`
	More     int64         `json:"more_steps,omitempty"` // that may decide it
	MoreTime int64         `json:"more_seconds,omitempty"`
	Against  *againstJSON  `json:"against,omitempty"`
	RunsOut  *forecastJSON `json:"runs_out,omitempty"`
	// Stacks are all that leak together, where there are several; label, frames and
	// stack_hash are of the first, all other figures of them together.
	Stacks []memberJSON `json:"stacks,omitempty"`
	// MoreSnapshots may decide it, as far apart as the last two; 0 where counters do.
	MoreSnapshots int `json:"more_snapshots,omitempty"`
	// Nodes is the growth of the process that is taken to be nodes of autograd's graph, or the items of a container: a part of
	// the rate, and of no tally.
	Nodes int64 `json:"graph_bytes,omitempty"`
	// Beside is by how much objects grew that the holder keeps beside tensors: a part of the rate, and of no tally.
	Beside int64 `json:"beside_bytes,omitempty"`
}

type memberJSON struct {
	Hash   string      `json:"stack_hash"`
	Frames []frameJSON `json:"frames"`
	Growth tallyJSON   `json:"growth"`
}

type rateJSON struct {
	Unit   string     `json:"unit"`
	Blocks *slopeJSON `json:"blocks,omitempty"`
	Bytes  slopeJSON  `json:"bytes"`
}

// againstJSON compares with a run that is known to be good.
type againstJSON struct {
	Match  string    `json:"match"` // "" where it has no such stack
	Good   rateJSON  `json:"good_rate"`
	Excess slopeJSON `json:"excess_bytes"`
}

// ranksJSON is what all ranks of a run show together; the rest is of one of them.
type ranksJSON struct {
	Judged []int          `json:"judged"`
	Leaks  []rankLeakJSON `json:"leaks"`
	Notes  []string       `json:"notes"`
}

type rankLeakJSON struct {
	On    []int    `json:"on"`
	Most  int      `json:"most_on"`
	Where string   `json:"where"`
	Rate  rateJSON `json:"rate"`
}

type slopeJSON struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	N     int     `json:"n"`
}

type holderJSON struct {
	Kind  string `json:"kind"`
	Path  string `json:"path"`
	Items int    `json:"items,omitempty"`
	// Counted is the step at which the items were, before that of the snapshot.
	Counted int64 `json:"items_at_step,omitempty"`
	Bound   int   `json:"bound,omitempty"` // how many items it may have
}

func holderOf(h *snapshot.Holder) *holderJSON {
	return &holderJSON{h.Kind, h.Path, h.Items, h.Counted, h.Bound}
}

type causeJSON struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Fix  string `json:"fix"`
	Why  string `json:"why"`
	// Others are the ids of causes that fit less well, the best first.
	Others []string `json:"others"`
}

type forecastJSON struct {
	// Steps; nil by the clock.
	Step  *int64 `json:"step,omitempty"`
	Low   *int64 `json:"low,omitempty"`
	High  *int64 `json:"high,omitempty"`
	Limit int64  `json:"limit_bytes"`
	// OfProcess: the limit is of all that the process may take.
	OfProcess bool `json:"of_process,omitempty"`
	// Beyond: it is farther away than 100 times the length of the run, and no step or time is given.
	// Open: high is cut to that.
	Beyond bool `json:"beyond,omitempty"`
	Open   bool `json:"open,omitempty"`
	// After are seconds after the last snapshot; nil where the run has no times.
	After *afterJSON `json:"after_seconds,omitempty"`
}

type afterJSON struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

type paceJSON struct {
	Event  string  `json:"event"`
	Every  int64   `json:"every_steps"`
	Events int64   `json:"events"`
	Blocks float64 `json:"blocks"`
	Bytes  int64   `json:"bytes"`
}

// JSON writes the comparison as one indented object: every finding with its whole
// stack, innermost frame first, and every site that changed as a row. Sizes are
// bytes, stack hashes 16 hexadecimal digits, rates for one unit of rate.unit with
// 95 % intervals. Keys for what is not known are left out; lists are never null.
// Names are as the snapshot files have them, escaped so that the text can stand
// on a terminal.
func JSON(w io.Writer, r *diff.Result) error {
	out := resultJSON{
		SchemaVersion: schemaVersion, Summary: Headline(r), Rule: string(r.Rule), First: markOf(r.First), Last: markOf(r.Last),
		Intermediate: r.Intermediate, Growth: tallyOf(r.Growth(), r.Uncounted()),
		Reserves: []reserveJSON{}, Totals: []accountJSON{}, Devices: []changeJSON{}, Findings: []findingJSON{}, Rows: []rowJSON{}, NotSeen: append([]string{}, r.NotSeen...), Notes: append([]string{}, r.Notes...), Known: r.Known,
	}
	if r.Refused != nil {
		out.OutOfMemory = refusedOf(r.Refused, r.Refused.History.Refused)
	}
	out.PeakByInput, out.AfterWarmUp = demandsOf(r), bandsOf(r)
	least := r.Least()
	if out.LeastSample = int64(least.Sample); r.Series.Axis.Unit == diff.Second {
		out.LeastTime = least.Every
	} else {
		out.Least = int64(least.Every)
	}
	for _, a := range accounts(r) {
		out.Totals = append(out.Totals, accountJSON{a.name, a.sites, tallyOf(a.growth, r.Uncounted())})
	}
	for _, d := range r.Last.Devices {
		c := changeJSON{Device: deviceName(d), Name: d.Name, Limit: knownBytes(d.Limit), Last: metersJSONOf(r.Last, &d)}
		if before := deviceOf(r.First, d); before != nil {
			m := metersJSONOf(r.First, before)
			c.First = &m
		}
		out.Devices = append(out.Devices, c)
	}
	for i := range r.Reserves {
		out.Reserves = append(out.Reserves, reserveOf(&r.Reserves[i]))
	}
	if a := r.Across; a != nil {
		out.Ranks = &ranksJSON{Judged: a.Ranks, Leaks: []rankLeakJSON{}, Notes: append([]string{}, a.Notes...)}
		for _, l := range a.Leaks {
			f := l.Finding
			out.Ranks.Leaks = append(out.Ranks.Leaks, rankLeakJSON{l.On, l.Rank, place(f.Rows[0], f.Headline), rateOf(f.Rate, f.Uncounted)})
		}
	}
	for i := range r.Findings {
		out.Findings = append(out.Findings, findingOf(r, &r.Findings[i]))
	}
	for _, c := range r.Children {
		var j childJSON
		for _, f := range withVerdict(c.Result, diff.Leak) {
			j.childOfJSON = *childOf(f)
			j.Findings = append(j.Findings, findingOf(c.Result, f))
		}
		out.Children = append(out.Children, j)
	}
	out.Rows = append(out.Rows, changedRows(r)...)
	return writeJSON(w, out)
}

func reserveOf(e *diff.Reserve) reserveJSON {
	j := reserveJSON{Device: deviceName(e.Device), Meter: string(e.Meter), Growth: int64(e.Growth), Live: int64(e.Live), Free: int64(e.Free), Largest: int64(e.Largest), Trim: int64(e.Trim)}
	if e.Rate.Unit != "" {
		j.Rate = &reserveRateJSON{string(e.Rate.Unit), slopeOf(e.Rate.Bytes)}
	}
	if e.Cause != nil {
		j.Cause = e.Cause.ID
	}
	if h := e.Graph; h != nil {
		j.Holder = holderOf(h)
	}
	if p := e.Processes; p != nil {
		j.Processes = &processesJSON{Printable(p.Role), p.PID, p.Alike, p.Of, p.Shared, p.Segments}
	}
	return j
}

// childOf is nil of what is in the process that was judged first.
func childOf(f *diff.Finding) *childOfJSON {
	c := f.Child
	if c == nil {
		return nil
	}
	return &childOfJSON{Printable(c.Role), c.PID, Printable(c.Machine), c.Alike, c.Of}
}

// changedRows are the sites that changed, or whose blocks did, in the order of the
// result; JSON and CSV show them.
func changedRows(r *diff.Result) []rowJSON {
	verdicts, named, uncounted := verdictsOf(r), headsOf(r.Findings), r.Uncounted()
	var out []rowJSON
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Growth() == (diff.Tally{}) && row.Born == (diff.Tally{}) {
			continue
		}
		out = append(out, rowJSON{
			Hash: hashText(row.Hash), Device: deviceName(row.Device), Where: place(row, named.of(row.Device, row.Hash, row.Frames)), Verdict: string(verdicts[row]),
			Before: tallyOf(row.Before, uncounted), After: tallyOf(row.After, uncounted), Growth: tallyOf(row.Growth(), uncounted),
			Born: tallyOf(row.Born, uncounted), Died: tallyOf(row.Died, uncounted),
		})
	}
	return out
}

func findingOf(r *diff.Result, f *diff.Finding) findingJSON {
	row, uncounted := f.Rows[0], f.Uncounted
	out := findingJSON{
		Verdict: string(f.Verdict), Evidence: string(f.Evidence), Reasons: append([]string{}, f.Reasons...),
		Frames: framesOf(row.Frames), Label: row.Label, Hash: hashText(row.Hash), Device: deviceName(row.Device),
		Live: tallyOf(f.After(), uncounted), Growth: tallyOf(f.Growth(), uncounted), Born: tallyOf(f.Born(), uncounted), Died: tallyOf(f.Died(), uncounted),
		Rate:   rateOfFinding(f),
		Owners: append([]string{}, f.Owners().Names()...), Estimate: f.Estimated(),
	}
	if f.Headline >= 0 {
		out.Headline = &out.Frames[f.Headline]
	}
	if h := f.Holder; h != nil {
		out.Holder = holderOf(h)
	}
	out.Cause, out.Nodes, out.Beside = causeOf(f), int64(nodesOf(f)), int64(f.Beside)
	out.Shape, out.More, out.MoreSnapshots = string(f.Shape), f.More.Steps, f.More.Snapshots
	if r.Series.Axis.Unit == diff.Second {
		out.More, out.MoreTime = 0, f.More.Steps
	}
	if p := f.Pace; p != nil {
		out.Pace = &paceJSON{string(p.Event), p.Every, p.Events, p.Blocks, int64(p.Bytes)}
	}
	if a := f.Against; a != nil {
		out.Against = &againstJSON{string(a.Match), rateOf(a.Good, uncounted), slopeOf(a.Excess)}
	}
	if at := f.RunsOut; at != nil {
		out.RunsOut = &forecastJSON{Limit: int64(at.Limit), OfProcess: at.OfProcess}
		out.RunsOut.Beyond, out.RunsOut.Open = at.Beyond, at.Open
		if at.Step != snapshot.NoStep {
			out.RunsOut.Step, out.RunsOut.Low, out.RunsOut.High = &at.Step, &at.Low, &at.High
		}
		if at.After > 0 {
			out.RunsOut.After = &afterJSON{at.After.Seconds(), at.AfterLow.Seconds(), at.AfterHigh.Seconds()}
		}
	}
	if len(f.Rows) > 1 {
		for _, row := range f.Rows {
			out.Stacks = append(out.Stacks, memberJSON{hashText(row.Hash), framesOf(row.Frames), tallyOf(row.Growth(), uncounted)})
		}
	}
	return out
}

// causeOf is nil where no cause is known. Of an inconclusive finding it is the cause if
// it leaks.
func causeOf(f *diff.Finding) *causeJSON {
	c := f.Cause
	if c == nil {
		return nil
	}
	out := &causeJSON{c.ID, c.Name, c.Fix, f.CauseWhy, []string{}}
	for _, o := range f.Others {
		out.Others = append(out.Others, o.Cause.ID)
	}
	return out
}

func markOf(s *snapshot.Snapshot) markJSON {
	m := markJSON{Phase: s.Mark.Phase, Producer: s.Producer}
	if s.Mark.Step != snapshot.NoStep {
		m.Step = &s.Mark.Step
	}
	if s.Mark.Epoch != snapshot.NoStep {
		m.Epoch = &s.Mark.Epoch
	}
	if s.Rank != snapshot.NoRank {
		m.Rank = &s.Rank
	}
	return m
}

// tallyOf leaves out the blocks that nobody counted.
func tallyOf(t diff.Tally, uncounted bool) tallyJSON {
	out := tallyJSON{Bytes: int64(t.Bytes), Requested: int64(t.Requested)}
	if !uncounted {
		out.Blocks = &t.Blocks
	}
	return out
}

// rateOfFinding is nil where there is none.
func rateOfFinding(f *diff.Finding) *rateJSON {
	if f.Rate.Unit == "" {
		return nil
	}
	rate := rateOf(f.Rate, f.Uncounted)
	return &rate
}

func rateOf(r diff.Rate, uncounted bool) rateJSON {
	out := rateJSON{Unit: string(r.Unit), Bytes: slopeOf(r.Bytes)}
	if !uncounted {
		blocks := slopeOf(r.Blocks)
		out.Blocks = &blocks
	}
	return out
}

func slopeOf(s trend.Slope) slopeJSON { return slopeJSON{s.Value, s.Low, s.High, s.N} }

// metersJSONOf are the meters of a device; without active and reserved where the file tells
// of it what is live and no more. A recorder of blocks that saw none used tells that nothing
// is reserved.
func metersJSONOf(s *snapshot.Snapshot, d *snapshot.Device) metersJSON {
	m := d.Meters
	if liveOnly(s, *d) && (s.Blocks.Count != nil || !unused(m)) {
		m.Active, m.Reserved = snapshot.Unknown, snapshot.Unknown
	}
	return metersJSON{int64(m.Requested), int64(m.Allocated), knownBytes(m.Active), knownBytes(m.Reserved), knownBytes(m.Driver)}
}

// knownBytes is nil for a size that nobody gave.
func knownBytes(b snapshot.Bytes) *int64 {
	if b == snapshot.Unknown {
		return nil
	}
	n := int64(b)
	return &n
}

func framesOf(frames []snapshot.Frame) []frameJSON {
	out := make([]frameJSON, len(frames))
	for i, f := range frames {
		out[i] = frameJSON{Function: f.Function, File: f.File}
		if f.Line > 0 {
			line := f.Line
			out[i].Line = &line
		}
	}
	return out
}

func hashText(h snapshot.Hash) string { return fmt.Sprintf("%016x", uint64(h)) }

// writeJSON indents, ends with a new line, and escapes every character that a
// terminal would obey or hide: encoding/json does so only below U+0020.
func writeJSON(w io.Writer, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	var b bytes.Buffer
	escapeJSON(&b, text)
	b.WriteByte('\n')
	_, err = w.Write(b.Bytes())
	return err
}

func escapeJSON(b *bytes.Buffer, text []byte) {
	for _, r := range string(text) {
		switch {
		case r == '\n' || !unprintable(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(b, `\u%04x`, r)
		}
	}
}
