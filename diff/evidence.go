package diff

import (
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// surroundings is what the causes of all findings are compared with, computed once.
type surroundings struct {
	frames   map[snapshot.Frame]int // number of rows whose stack has the frame
	stacked  int                    // rows with a stack
	backward cause.Answer
	sites    map[series.SiteKey]*snapshot.Site // of the last snapshot
	// plain: all rows are on the host heap of a program that has no stack that trains.
	plain bool
}

// noTensors reports whether the program is known to have no tensors: no stack trains, or the agent knows that the
// program imported no tensor library.
func (r *Result) noTensors() bool {
	if r.Last.Producer != pythonProducer {
		return len(r.Rows) > 0 && r.surroundings().plain
	}
	return r.run.Info.Packages != nil && !slices.ContainsFunc(tensorPackages, func(name string) bool { return r.run.Info.Packages[name] != "" })
}

// tensorPackages are Python's tensor libraries.
var tensorPackages = []string{"torch", "jax", "tensorflow", "cupy", "mlx", "mxnet", "paddle", "tinygrad"}

func (r *Result) surroundings() *surroundings {
	if r.around != nil {
		return r.around
	}
	a := &surroundings{frames: make(map[snapshot.Frame]int), sites: make(map[series.SiteKey]*snapshot.Site)}
	r.around = a
	a.backward = seenBackward(r.run.Series)
	a.plain = true
	for i := range r.Rows {
		row := &r.Rows[i]
		a.plain = a.plain && row.Device.Name == hostHeap && !slices.ContainsFunc(row.Frames, frame.Trains)
		addFrames(a.frames, row)
		if len(row.Frames) > 0 {
			a.stacked++
		}
		if row.Owners&(snapshot.OwnedByGrad|snapshot.OwnedByOptim) != 0 || frame.GoesBackward(row.Frames) {
			a.backward = cause.Yes
		}
	}
	sites := r.Last.Sites()
	for i := range sites {
		a.sites[series.KeyOf(r.Last, sites[i].SiteKey)] = &sites[i]
	}
	return a
}

// seenBackward reports whether a run's counters show an allocation in a backward pass or by an optimizer. Only
// counters that also list what lives within a step can deny it, since gradients are usually freed by the end of a
// step.
func seenBackward(c *snapshot.Series) cause.Answer {
	if c == nil {
		return cause.Unknown
	}
	held := make([]bool, len(c.Sites))
	for i := range c.Points {
		for _, at := range c.Points[i].Sites {
			held[at.Site] = true
		}
	}
	answer := cause.Unknown
	for i, site := range c.Sites {
		if frame.GoesBackward(c.Stacks.Frames(site.Stack)) {
			return cause.Yes
		}
		if !held[i] {
			answer = cause.No
		}
	}
	return answer
}

// undecided is for how many inconclusive findings, the first ones, a cause is searched. A pair of snapshots has
// thousands, and each search covers the whole run.
const undecided = 20

// explain adds the causes of findings, which are in the order of their verdicts. The cause of an inconclusive finding
// applies if it leaks.
func (r *Result) explain(findings []Finding) {
	maybe := 0
	for i := range findings {
		f := &findings[i]
		if f.Verdict == Inconclusive {
			if maybe++; maybe > undecided {
				continue
			}
		}
		if f.OfProcess() {
			continue
		}
		if fit := cause.Matches(r.evidence(f)); len(fit) > 0 {
			f.Cause, f.CauseWhy, f.Others = fit[0].Cause, fit[0].Why, fit[1:]
		}
	}
}

// CauseNamed is the entry of the catalogue with this id, in words that fit the program; nil for none.
func (r *Result) CauseNamed(id string) *cause.Cause {
	if r.noTensors() {
		return cause.FindPlainly(id)
	}
	return cause.Find(id)
}

// mostFrames is how many frames of a stack, the innermost, are searched for its cause. Python's own stacks have no
// more.
const mostFrames = 1000

// evidence is what sites that grow together show of their cause. Settled findings are not compared with the rest of
// the run, which has thousands of them.
func (r *Result) evidence(f *Finding) *cause.Evidence {
	open := f.Verdict == Leak || f.Verdict == Inconclusive
	e := &cause.Evidence{Leaking: open, Settled: f.Verdict == Bounded, Shape: cause.Shape(f.Shape), Graph: f.graph && f.Owners() == 0, Nodes: f.nodesBehind(), Native: f.native}
	for _, row := range f.Rows {
		g, frames := row.Growth(), row.Frames[:min(len(row.Frames), mostFrames)]
		s := cause.Site{
			Frames: frames, Headline: frame.Headline(frames), Owners: row.Owners &^ snapshot.Lost, Lost: f.Evidence == Proof,
			Live: row.After.Blocks, Blocks: g.Blocks, Requested: g.Requested,
		}
		for _, h := range r.Last.Holders {
			if row.HangsOn(&h) && r.mayHold(&h, row) {
				s.Holders = append(s.Holders, h)
				s.TakenIn = s.TakenIn || r.takesIn(row, &h)
				if h.Kind == "graph" || h.Kind == snapshot.Nodes {
					s.Owners |= snapshot.OwnedByTape
				}
			}
		}
		if len(s.Holders) == 0 && f.Holder != nil && onLanguageHeap(f.Rows) { // that holder's blocks include this row
			s.Holders, s.TakenIn = append(s.Holders, *f.Holder), f.filled
		}
		e.Sites = append(e.Sites, s)
	}
	if open {
		r.surround(e, f.Rows)
	}
	hide(r.options.Without, e)
	return e
}

// surround adds what the rest of the run shows about the rows.
func (r *Result) surround(e *cause.Evidence, rows []*Row) {
	particular := r.particular(rows)
	for i, row := range rows {
		s := &e.Sites[i]
		s.Private, s.Common = r.private(row), make([]bool, len(s.Frames))
		for k, f := range s.Frames {
			s.Common[k] = !particular(f)
		}
	}
	e.Driver = r.driver(rows[0]).driver
	e.Backward, e.Head = r.surroundings().backward, r.graphEnd(rows)
	e.Drained = r.drained(rows)
	e.Objects = onLanguageHeap(rows) || rows[0].Device.Kind == snapshot.Items
	e.Plain, e.NoTensors = r.surroundings().plain, r.noTensors()
	e.Segments = !slices.ContainsFunc(rows, func(row *Row) bool { return row.Device.Kind != snapshot.SharedMemory })
	e.Programs = !slices.ContainsFunc(rows, func(row *Row) bool { return row.Device.Kind != snapshot.Executable })
	e.CollectorOff = slices.ContainsFunc(r.Last.Notes, func(n string) bool { return strings.HasPrefix(n, collectorOff) })
	e.Host = onHost(rows) && slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Device.Name != hostHeap })
}

// particular returns a function that reports whether a frame is specific to these rows: at most half of the other
// stacks have it. With fewer than three other stacks every frame is.
func (r *Result) particular(rows []*Row) func(snapshot.Frame) bool {
	a := r.surroundings()
	own := make(map[snapshot.Frame]int)
	for _, row := range rows {
		addFrames(own, row)
	}
	others := a.stacked - len(rows)
	return func(f snapshot.Frame) bool { return others < 3 || 2*(a.frames[f]-own[f]) <= others }
}

// addFrames adds one to the count of each distinct frame of the row's stack.
func addFrames(stacks map[snapshot.Frame]int, row *Row) {
	seen := make(map[snapshot.Frame]bool, len(row.Frames))
	for _, f := range row.Frames {
		if !seen[f] {
			seen[f] = true
			stacks[f]++
		}
	}
}

// pythonProducer is the producer of snapshots of a Python program without recorded tensors.
const pythonProducer = "Python"

// hostHeap is the name of the process's own memory in readers and recorders.
const hostHeap = "host heap"

// collectorOff is the beginning of the recorder's note about a program that has turned Python's cycle collector off.
const collectorOff = "Python's collector of cycles is off"

// onLanguageHeap reports whether all rows are objects on a language's heap, and no tensors.
func onLanguageHeap(rows []*Row) bool {
	return !slices.ContainsFunc(rows, func(row *Row) bool { return row.Device.Kind != snapshot.PythonHeap })
}

func onHost(rows []*Row) bool {
	return !slices.ContainsFunc(rows, func(row *Row) bool { return row.Device.Name != hostHeap })
}

// graphEnd reports whether the program holds the end of a graph that it extends: either one of the rows' blocks; or a
// block that is recreated, without becoming more, in a function of the user's that allocates blocks of the rows. It
// is Unknown if the snapshot does not record owners or no graph holds the rows.
func (r *Result) graphEnd(rows []*Row) cause.Answer {
	if !slices.ContainsFunc(rows, func(row *Row) bool { return row.Owners&snapshot.OwnedByTape != 0 }) {
		return cause.Unknown
	}
	functions, particular := make(map[string]bool), r.particular(rows)
	for _, row := range rows {
		if row.Owners&snapshot.OwnedByUser != 0 {
			return cause.Yes
		}
		for _, f := range row.Frames {
			if particular(f) && !frame.Library(f) {
				functions[f.Function] = true
			}
		}
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Owners&snapshot.OwnedByUser == 0 || row.Born.Blocks == 0 || row.Growth().Blocks > 0 && len(birthEvents(row)) > 1 {
			continue
		}
		if slices.ContainsFunc(row.Frames, func(f snapshot.Frame) bool { return functions[f.Function] }) {
			return cause.Yes
		}
	}
	return cause.No
}

// drained reports whether the oldest blocks of all rows were freed. A queue frees whole items, while a list of models
// keeps those whose gradients were replaced.
func (r *Result) drained(rows []*Row) cause.Answer {
	answer := cause.Yes
	for _, row := range rows {
		switch r.drainedRow(row) {
		case cause.No:
			return cause.No
		case cause.Unknown:
			answer = cause.Unknown
		}
	}
	return answer
}

// drainedRow reports whether a row's oldest blocks were freed: those of the first tenth of the time since it had any.
// It is Unknown if births are unknown or sampled: which blocks belong to unwatched steps is unknown.
func (r *Result) drainedRow(row *Row) cause.Answer {
	if r.Series == nil || len(row.Births.Steps) == 0 || row.Births.Sampled() {
		return cause.Unknown
	}
	site := r.Series.Site(row)
	if site == nil {
		return cause.Unknown
	}
	at := slices.IndexFunc(site.Blocks, func(n int64) bool { return n > 0 })
	if at < 0 || r.Series.Marks[at].Step == snapshot.NoStep {
		return cause.Unknown
	}
	if row.Before.Blocks > row.Died.Blocks {
		return cause.No // blocks of the first snapshot are still live
	}
	begun, last := r.Series.Marks[at].Step, r.Last.Mark.Step
	if 10*(slices.Min(row.Births.Steps)-begun) > last-begun {
		return cause.Yes
	}
	return cause.No
}

// private reports whether a block of the row is in a private pool.
func (r *Result) private(row *Row) bool {
	site := r.surroundings().sites[row.Key]
	if site == nil {
		return false
	}
	for _, at := range site.Rows {
		if r.Last.Segments[r.Last.Blocks.Segment[at]].Private != "" {
			return true
		}
	}
	return false
}
