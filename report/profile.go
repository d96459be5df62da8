package report

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// Profile is memory by stack: what one snapshot holds, or what changed between two. Flame, Folded and Pprof draw it.
type Profile struct {
	Growth bool // samples are changes, and may be negative
	// PerUnit is "step", "second" or "snapshot" in a profile of rates. Its tallies are per thousand units, so that slow rates are whole
	// numbers, too.
	PerUnit string
	Title   string // one line, escaped
	Samples []Sample
	// Taken is the later snapshot's mark; Since is the earlier one's, for growth.
	Taken, Since snapshot.Mark
	Inverted     bool               // whether stacks are drawn from the allocating call outwards
	Uncounted    bool               // the profiler gave bytes only: counts of blocks mean nothing
	Snapshot     *snapshot.Snapshot // the snapshot that is shown; nil for growth

	heads heads // the frames by which findings name the samples; nil without a judgement
}

// Sample is one site of a Profile.
type Sample struct {
	Device        snapshot.Device
	Hash          snapshot.Hash
	Frames        []snapshot.Frame // innermost first; nil for a site without stack
	Label         string           // names a site without stack
	Verdict       diff.Verdict     // "" if not judged
	Before, After diff.Tally       // Before is zero in a snapshot's profile
	Noise         bool             // for a rate: whether its 95 % interval includes zero

	head *snapshot.Frame // the frame that named it before calls were left out; nil if none were
}

// Value is what the site holds, or its growth.
func (s *Sample) Value() diff.Tally {
	return diff.Tally{
		Blocks: s.After.Blocks - s.Before.Blocks, Bytes: s.After.Bytes - s.Before.Bytes,
		Requested: s.After.Requested - s.Before.Requested,
	}
}

// GrowthProfile has every site that changed between the result's snapshots, in the order of its rows; its values sum to r.Growth.
// Leaking sites of other processes follow, with the role as their outermost frame.
func GrowthProfile(r *diff.Result) *Profile {
	p := siteGrowth(r)
	for _, c := range r.Children {
		p.Samples = append(p.Samples, inProcess(c, siteGrowth(c.Result).Samples)...)
	}
	return p
}

// inProcess adds another process's role to samples as their outermost frame.
func inProcess(c *diff.Child, samples []Sample) []Sample {
	for i := range samples {
		s := &samples[i]
		s.Frames = append(slices.Clone(s.Frames), snapshot.Frame{Function: c.Role, Line: -1})
	}
	return samples
}

func siteGrowth(r *diff.Result) *Profile {
	first, last := names(r)
	p := &Profile{Growth: true, Title: "Growth of live memory, " + first + " to " + last, Taken: r.Last.Mark, Since: r.First.Mark, Uncounted: r.Uncounted()}
	if r.Across != nil {
		p.Title += ", " + rankOf(r)
	}
	p.heads = headsOf(r.Findings)
	verdicts := verdictsOf(r)
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Growth() == (diff.Tally{}) {
			continue
		}
		p.Samples = append(p.Samples, Sample{
			Device: row.Device, Hash: row.Hash, Frames: row.Frames, Label: row.Label,
			Verdict: verdicts[row], Before: row.Before, After: row.After,
		})
	}
	return p
}

// rateScale is the number of steps that the tallies of a profile of rates cover.
const rateScale = 1000

// RateProfile has the rate of every site that changed, per 1,000 steps, or seconds, or snapshots if neither is known. Before is how
// much a site shrinks, After how much it grows.
func RateProfile(r *diff.Result) *Profile {
	if r.Leaks() > 0 || len(r.Children) == 0 {
		return siteRates(r)
	}
	p := siteRates(r.Children[0].Result)
	p.Samples = inProcess(r.Children[0], p.Samples)
	p.Title += ", " + Printable(r.Children[0].Role)
	return p
}

func siteRates(r *diff.Result) *Profile {
	p := siteGrowth(r)
	samples := p.Samples
	p.Samples = nil
	at := 0
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Growth() == (diff.Tally{}) {
			continue // GrowthProfile leaves it out, too
		}
		s := samples[at]
		at++
		rate := r.RateOf(row)
		p.PerUnit = string(rate.Unit)
		s.Noise = doubt(rate.Bytes) != ""
		s.Before, s.After = diff.Tally{}, diff.Tally{}
		tally := diff.Tally{Blocks: scaled(rate.Blocks.Value), Bytes: snapshot.Bytes(scaled(rate.Bytes.Value))}
		if tally.Bytes < 0 {
			s.Before = diff.Tally{Blocks: -tally.Blocks, Bytes: -tally.Bytes}
		} else {
			s.After = tally
		}
		if tally != (diff.Tally{}) {
			p.Samples = append(p.Samples, s)
		}
	}
	if p.PerUnit == "" {
		p.PerUnit = "step"
	}
	p.Title = strings.Replace(p.Title, "Growth of live memory", "Rate of growth per "+p.PerUnit, 1)
	return p
}

func scaled(rate float64) int64 { return int64(math.Round(rate * rateScale)) }

// verdictsOf maps the rows that are part of a finding to its verdict.
func verdictsOf(r *diff.Result) map[*diff.Row]diff.Verdict {
	verdicts := make(map[*diff.Row]diff.Verdict, len(r.Findings))
	for i := range r.Findings {
		for _, row := range r.Findings[i].Rows {
			verdicts[row] = r.Findings[i].Verdict
		}
		for _, row := range r.Findings[i].Behind {
			verdicts[row] = r.Findings[i].Verdict
		}
	}
	return verdicts
}

// LiveProfile holds every live site of a snapshot, largest first.
func LiveProfile(s *snapshot.Snapshot) *Profile {
	title := "Live memory of " + snapshotName(s)
	if what := momentTitle(s); what != "" {
		title = "Live memory, " + what
	}
	p := &Profile{Title: title, Taken: s.Mark, Since: s.Mark, Uncounted: s.Blocks.Uncounted(), Snapshot: s}
	for _, site := range s.Sites() {
		p.Samples = append(p.Samples, Sample{
			Device: s.Devices[site.Device], Hash: site.Hash, Frames: s.Stacks.Frames(site.Stack), Label: site.Label,
			After: diff.Tally{Blocks: site.Count, Bytes: site.Bytes, Requested: site.Requested},
		})
	}
	return p
}

// snapshotName is the name of a single snapshot in a report.
func snapshotName(s *snapshot.Snapshot) string {
	if s.Mark.Step == snapshot.NoStep {
		return "the snapshot"
	}
	return "snapshot_" + strconv.FormatInt(s.Mark.Step, 10)
}

// devices counts the distinct devices of the samples.
func (p *Profile) devices() int {
	seen := make(map[string]struct{})
	for i := range p.Samples {
		seen[deviceName(p.Samples[i].Device)] = struct{}{}
	}
	return len(seen)
}
