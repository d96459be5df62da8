package diff

import (
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// surroundings is what a result's findings are seen against, to tell their causes:
// gathered once.
type surroundings struct {
	frames   map[snapshot.Frame]int // rows whose stack has it
	stacked  int                    // rows with a stack
	backward cause.Answer
	sites    map[series.SiteKey]*snapshot.Site // of the last snapshot
	// plain: all is on the heap of a program that has no line of Python and no tensors.
	plain bool
}

// noTensors reports whether the program is known to have none: no stack trains, or the agent is in a program that is known to
// have imported no library of tensors.
func (r *Result) noTensors() bool {
	if r.Last.Producer != pythonProducer {
		return len(r.Rows) > 0 && r.surroundings().plain
	}
	return r.run.Info.Packages != nil && !slices.ContainsFunc(tensorPackages, func(name string) bool { return r.run.Info.Packages[name] != "" })
}

// tensorPackages are libraries of tensors, as a program of Python's imports them.
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

// seenBackward tells from a run's counters whether anything was allocated in a backward
// pass or by an optimizer. Only counters that name what lives within a step can deny it:
// gradients are gone at the end of a step as a rule.
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

// undecided is of how many inconclusive findings a cause is sought, the first: a pair of
// snapshots has thousands, and a cause is sought in all of the run.
const undecided = 20

// explain adds the causes of findings, which come in the order of their verdicts. What
// is inconclusive has the cause that it has if it is a leak.
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

// CauseNamed is the entry of the catalogue with this id, in words for what the program has; nil where there is none.
func (r *Result) CauseNamed(id string) *cause.Cause {
	if r.noTensors() {
		return cause.FindPlainly(id)
	}
	return cause.Find(id)
}

// mostFrames of a stack, the innermost, tell of its cause. Python's own stacks have no more.
const mostFrames = 1000

// evidence is what sites that grow together show of their cause. Of what has settled
// nothing is held against the rest of the run: a run has thousands of such sites.
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
		if len(s.Holders) == 0 && f.Holder != nil && onLanguageHeap(f.Rows) { // it holds what this is a part of
			s.Holders = append(s.Holders, *f.Holder)
		}
		e.Sites = append(e.Sites, s)
	}
	if open {
		r.surround(e, f.Rows)
	}
	hide(r.options.Without, e)
	return e
}

// surround adds what the rest of the run tells of the rows.
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

// particular reports of a frame whether it says something of these rows: most other
// stacks do not run through it. Among fewer than three others, most is not many.
func (r *Result) particular(rows []*Row) func(snapshot.Frame) bool {
	a := r.surroundings()
	own := make(map[snapshot.Frame]int)
	for _, row := range rows {
		addFrames(own, row)
	}
	others := a.stacked - len(rows)
	return func(f snapshot.Frame) bool { return others < 3 || 2*(a.frames[f]-own[f]) <= others }
}

// addFrames counts the row's stack for each frame that it runs through.
func addFrames(stacks map[snapshot.Frame]int, row *Row) {
	seen := make(map[snapshot.Frame]bool, len(row.Frames))
	for _, f := range row.Frames {
		if !seen[f] {
			seen[f] = true
			stacks[f]++
		}
	}
}

// pythonProducer made the snapshots of a Python program without recorded tensors.
const pythonProducer = "Python"

// hostHeap is what readers and recorders name the process's own memory.
const hostHeap = "host heap"

// collectorOff begins the note that the recorder writes of a program which has turned
// Python's collector of cycles off.
const collectorOff = "Python's collector of cycles is off"

// onLanguageHeap is true for rows of objects, which are no tensors.
func onLanguageHeap(rows []*Row) bool {
	return !slices.ContainsFunc(rows, func(row *Row) bool { return row.Device.Kind != snapshot.PythonHeap })
}

func onHost(rows []*Row) bool {
	return !slices.ContainsFunc(rows, func(row *Row) bool { return row.Device.Name != hostHeap })
}

// graphEnd looks for the end of a graph that the program carries on: a block that it
// holds, recreated and no more of them, in a function of the user's in which blocks
// of the rows are born; or one of the rows' own that it holds. Unknown where the
// snapshot does not tell owners, or no graph holds the rows.
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

// drained reports whether the oldest blocks of all rows are gone: a queue's items go as a whole, while a list of models still has
// those whose gradients were replaced.
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

// drainedRow reports whether a row's oldest blocks are gone: those of the first tenth of the time
// since it has any. Unknown where births are not, or of some steps only: of the others it is not known which blocks are theirs.
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
		return cause.No // those of the first snapshot are still there
	}
	begun, last := r.Series.Marks[at].Step, r.Last.Mark.Step
	if 10*(slices.Min(row.Births.Steps)-begun) > last-begun {
		return cause.Yes
	}
	return cause.No
}

// private reports whether a block of the row lies in a private pool.
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
