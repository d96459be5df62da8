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

func holderOf(h *snapshot.Holder) *holderJSON {
	return &holderJSON{h.Kind, h.Path, h.Items, h.Counted, h.Bound}
}

// JSON writes the comparison as one indented object: every finding with its whole stack, innermost frame first, and every call site
// that changed as a row. Sizes are bytes, stack hashes 16 hexadecimal digits, and rates per rate.unit with 95 % intervals. Unknown
// values have no key; lists are never null. Names are as in the snapshot files, escaped so that the text is safe on a terminal.
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
	if at := e.Line(); at != nil {
		j.Headline = &framesOf([]snapshot.Frame{*at})[0]
	}
	if h := e.Graph; h != nil {
		j.Holder = holderOf(h)
	}
	if p := e.Processes; p != nil {
		j.Processes = &processesJSON{Printable(p.Role), p.PID, p.Alike, p.Of, p.Shared, p.Segments}
	}
	return j
}

// childOf is nil for a finding in the process that was judged first.
func childOf(f *diff.Finding) *childOfJSON {
	c := f.Child
	if c == nil {
		return nil
	}
	return &childOfJSON{Printable(c.Role), c.PID, Printable(c.Machine), c.Alike, c.Of}
}

// changedRows lists the call sites whose size or blocks changed, in the order of the result, for JSON and CSV.
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

// causeOf is nil if no cause is known. For an inconclusive finding it is the cause that applies if it leaks.
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

// tallyOf leaves out the blocks if they were not counted.
func tallyOf(t diff.Tally, uncounted bool) tallyJSON {
	out := tallyJSON{Bytes: int64(t.Bytes), Requested: int64(t.Requested)}
	if !uncounted {
		out.Blocks = &t.Blocks
	}
	return out
}

// rateOfFinding is nil if the finding has no rate.
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

// metersJSONOf are the meters of a device. Active and reserved are left out if the file only has live memory. If a recorder of blocks
// saw none in use, nothing is reserved, and both are 0.
func metersJSONOf(s *snapshot.Snapshot, d *snapshot.Device) metersJSON {
	m := d.Meters
	if liveOnly(s, *d) && (s.Blocks.Count != nil || !unused(m)) {
		m.Active, m.Reserved = snapshot.Unknown, snapshot.Unknown
	}
	return metersJSON{int64(m.Requested), int64(m.Allocated), knownBytes(m.Active), knownBytes(m.Reserved), knownBytes(m.Driver)}
}

// knownBytes is nil for an unknown size.
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

// writeJSON writes indented JSON with a final newline. It escapes every character that a terminal would obey or hide, since
// encoding/json only escapes those below U+0020.
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
