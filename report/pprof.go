package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/google/pprof/profile"
	"github.com/memdiag/memdiag/snapshot"
)

// Pprof writes p as a gzipped profile.proto for go tool pprof and similar tools. The sample types are blocks/count and bytes/bytes, by
// default bytes; only bytes if blocks were not counted. For growth they are growth_blocks and growth_bytes, and may be negative; for
// rates they end in _per_1000_steps. Labels have the device, the stack hash, and the verdict if there is one, so that -tagfocus=leak
// selects leaks. Names are escaped, since pprof prints them as they are.
func Pprof(w io.Writer, p *Profile) error {
	prefix, what := "", "memdiag: "+p.Title
	if p.Growth {
		prefix = "growth_"
	}
	suffix := ""
	if p.PerUnit != "" {
		suffix = fmt.Sprintf("_per_%d_%ss", rateScale, p.PerUnit)
	}
	b := pprofBuilder{
		functions: make(map[[2]string]*profile.Function),
		locations: make(map[pprofPlace]*profile.Location),
		// pprof calls a profile without mapping "unknown", and cannot merge one without period type.
		out: &profile.Profile{
			SampleType:        []*profile.ValueType{{Type: prefix + "bytes" + suffix, Unit: "bytes"}},
			DefaultSampleType: prefix + "bytes" + suffix,
			PeriodType:        &profile.ValueType{Type: "space", Unit: "bytes"}, Period: 1,
			Mapping:  []*profile.Mapping{{ID: 1, File: "memory", HasFunctions: true, HasFilenames: true, HasLineNumbers: true}},
			Comments: []string{what},
		},
	}
	if !p.Uncounted {
		b.out.SampleType = slices.Insert(b.out.SampleType, 0, &profile.ValueType{Type: prefix + "blocks" + suffix, Unit: "count"})
	}
	if p.Snapshot != nil {
		b.out.Period = max(1, int64(p.Snapshot.SamplePeriod))
		b.out.Comments = append(b.out.Comments, remarks(p.Snapshot)...)
	}
	if !p.Taken.Time.IsZero() {
		b.out.TimeNanos = p.Taken.Time.UnixNano()
		if !p.Since.Time.IsZero() {
			b.out.DurationNanos = p.Taken.Time.Sub(p.Since.Time).Nanoseconds()
		}
	}
	for i := range p.Samples {
		if v := p.Samples[i].Value(); v.Blocks != 0 || v.Bytes != 0 {
			values := []int64{v.Blocks, int64(v.Bytes)}
			b.add(&p.Samples[i], values[2-len(b.out.SampleType):])
		}
	}
	if err := b.out.CheckValid(); err != nil {
		return fmt.Errorf("pprof: %w", err)
	}
	return b.out.Write(w)
}

// remarks are comments for what a profile has no fields for. Package pprofio reads them.
func remarks(s *snapshot.Snapshot) []string {
	var out []string
	remark := func(format string, args ...any) {
		out = append(out, "memdiag: "+Printable(fmt.Sprintf(format, args...)))
	}
	if s.Mark.Step != snapshot.NoStep {
		remark("step %d", s.Mark.Step)
	}
	if s.Rank != snapshot.NoRank {
		remark("rank %d", s.Rank)
	}
	remark("producer %s", s.Producer)
	if h := s.History; h.Process != "" {
		remark("recording %s since %d", h.Process, h.First.UnixMicro())
	}
	for _, d := range s.Devices {
		if d.Name != "" {
			remark("device %s is %s", deviceName(d), d.Name)
		}
	}
	for _, n := range s.Notes {
		remark("note %s", n)
	}
	return out
}

type pprofPlace struct {
	function, file string
	line           int64
}

type pprofBuilder struct {
	out       *profile.Profile
	functions map[[2]string]*profile.Function
	locations map[pprofPlace]*profile.Location
}

func (b *pprofBuilder) add(s *Sample, values []int64) {
	sample := &profile.Sample{
		Value: values,
		Label: map[string][]string{"device": {deviceName(s.Device)}, "stack_hash": {hashText(s.Hash)}},
	}
	if s.Verdict != "" {
		sample.Label["verdict"] = []string{string(s.Verdict)}
	}
	for _, f := range s.Frames {
		name := function(f)
		if f.Function == "" {
			name = frameLabel(f) // otherwise everything from tracemalloc would be one function
		}
		sample.Location = append(sample.Location, b.location(pprofPlace{name, Printable(f.File), max(int64(f.Line), 0)}))
	}
	if len(s.Frames) == 0 {
		sample.Location = append(sample.Location, b.location(pprofPlace{function: Printable(s.Label)}))
	}
	b.out.Sample = append(b.out.Sample, sample)
}

func (b *pprofBuilder) location(at pprofPlace) *profile.Location {
	if l := b.locations[at]; l != nil {
		return l
	}
	name := [2]string{at.function, at.file}
	f := b.functions[name]
	if f == nil {
		// With an equal SystemName, pprof would take <module> for arguments of a template, and drop it.
		f = &profile.Function{ID: uint64(len(b.out.Function) + 1), Name: at.function, Filename: at.file}
		b.functions[name] = f
		b.out.Function = append(b.out.Function, f)
	}
	l := &profile.Location{ID: uint64(len(b.out.Location) + 1), Mapping: b.out.Mapping[0], Line: []profile.Line{{Function: f, Line: at.line}}}
	b.locations[at] = l
	b.out.Location = append(b.out.Location, l)
	return l
}

// Largest is a profile of the n samples that hold, or changed, most, in their order; left is how many are left out.
func (p *Profile) Largest(n int) (largest *Profile, left int) {
	if len(p.Samples) <= n {
		return p, 0
	}
	size := func(i int) snapshot.Bytes {
		v := p.Samples[i].Value().Bytes
		return max(v, -v)
	}
	order := make([]int, len(p.Samples))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(size(j), size(i)) })
	order = order[:n]
	slices.Sort(order)
	out := *p
	out.Samples = make([]Sample, 0, n)
	for _, i := range order {
		out.Samples = append(out.Samples, p.Samples[i])
	}
	return &out, len(p.Samples) - n
}
