package diff

import (
	"cmp"
	"maps"
	"slices"

	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

const (
	// beginning is the share of a process's time in which it takes what it needs: imports, its
	// data, the queues that it fills.
	beginning = 1. / 3
	// toTheEnd is the share of the record that must have passed when a process ends for its
	// growth to matter: else it has given it back.
	toTheEnd = 2. / 3
	// endingLooks are the last looks at which a process may be ending, and given is what it has left then, at most.
	endingLooks, given = 3, 0.9
	// faster is by how much growth of the second half outruns that of the time before, after its beginning, if it began late.
	faster = 1.5
	// fewestRises are the rises after its beginning that put a process with few looks in doubt, and lastShare is how much of the
	// mean rise the last one has at least.
	fewestRises, lastShare = 2, 0.5
	// leastGrowth is less than any program takes to begin.
	leastGrowth = 1 << 20
)

// Processes are one of the command's processes in which nothing was recorded, or several of one
// role together, or shared memory.
type Processes struct {
	Role string // "loader worker 3"; of several, what their roles have in common
	PID  int    // 0 where it is of several together
	// Alike counts the processes of that kind that grow, and Of those that there are.
	Alike, Of int
	// Alone is whether none of the others grew by half as much.
	Alone    bool
	Recorded bool // snapshots of it explain less than half of that
	Shared   bool // what grows is shared memory
	Kernel   bool // what grows is the kernel's for them
	// Successive is whether they follow each other, and each later one takes more.
	Successive bool
	// OrOthers is whether other programs may have made the files of shared memory.
	OrOthers bool
	Segments int64 // the most files of shared memory that there were, with Shared; 0 where they are not known
	// Folder has most of them, and Writer is the role of the process, or of several alike, that wrote about as much as they took
	// meanwhile; "" where it is not known.
	Folder, Writer string
}

// hostProducer made snapshots of a command's programs, without an agent.
const hostProducer = "memdiag record"

// growingProcesses are those of the command's processes, and kinds of them, that grew steadily
// and in which nothing was recorded, and shared memory that did.
func (r *Result) growingProcesses() []Reserve {
	if r.run.Tree == nil || len(r.run.Tree.Processes) == 0 || r.Last.Producer == hostProducer && r.Leaks() > 0 {
		return nil // snapshots of the programs of all processes show it
	}
	t := newForest(r.run.Tree, r.recorded)
	private := func(p *snapshot.ProcessPoint) snapshot.Bytes { return p.Anonymous + p.Swapped }
	out := r.growingOf(t, private)
	if len(out) == 0 {
		out = r.growingSuccessors(t, private)
	}
	if len(out) == 0 && len(t.kinds) > 1 { // each may have a name of its own
		if e := r.grows(t.together(t.others, private)); e != nil && e.Growth >= r.agentsTake(e.Growth, t.others...) {
			e.Processes = &Processes{Role: "several roles"}
			out = append(out, *e)
		}
	}
	if s := r.sharedMemory(t); s != nil {
		out = append(out, *s)
	}
	if k := r.kernelMemory(t); k != nil {
		out = append(out, *k)
	}
	return out
}

// recorded reports whether snapshots tell of all of a process's memory.
func (r *Result) recorded(p *snapshot.TreeProcess) bool {
	whole := slices.ContainsFunc(r.Series.Devices, func(d snapshot.Device) bool { return d.Kind == snapshot.Process })
	return whole && p.Points[len(p.Points)-1].Recorded
}

// profiled reports whether snapshots tell of a part of a process's memory, as JAX's profiles on the CPU do: of its arrays.
func (r *Result) profiled(p *snapshot.TreeProcess) bool {
	part := slices.ContainsFunc(r.Series.Devices, func(d snapshot.Device) bool { return d.Kind.InProcess() })
	return part && p.Points[len(p.Points)-1].Recorded && !r.recorded(p) && !r.inside(p)
}

// profiledGrowth is what recorded sites of the process have gained.
func (r *Result) profiledGrowth() (grown snapshot.Bytes) {
	for i := range r.Rows {
		if r.Rows[i].Device.Kind.InProcess() {
			grown += r.Rows[i].Growth().Bytes
		}
	}
	return grown
}

// mostKinds is how many roles are judged, of those that held most; each takes as long as there are looks.
const mostKinds = 64

// growingOf is a reserve for each kind of processes of which one or all together grow.
func (r *Result) growingOf(f *forest, memory func(*snapshot.ProcessPoint) snapshot.Bytes) (out []Reserve) {
	for _, kind := range slices.Sorted(maps.Keys(f.kinds)) {
		of := f.kinds[kind]
		var most *Reserve
		grow, there, ends := 0, 0, endsOf(of, memory)
		for _, p := range of {
			if !f.lasts(p) {
				continue
			}
			there++
			// What one had in the end is missed by up to one look.
			if ends.replaced(p.Points[0].Time, memory(&p.Points[max(0, len(p.Points)-2)])) {
				continue
			}
			x, y := make([]float64, len(p.Points)), make([]float64, len(p.Points))
			for i := range p.Points {
				x[i], y[i] = p.Points[i].Time.Sub(f.began).Seconds(), float64(memory(&p.Points[i]))
			}
			e := cmp.Or(r.grows(x, y), r.growsLate(x, y), r.growsBriefly(x, y))
			if e == nil || e.Growth < r.agentsTake(e.Growth, p) {
				continue
			}
			profiled := r.profiled(p)
			if profiled && 2*r.profiledGrowth() >= e.Growth {
				continue
			}
			grow++
			if most == nil || e.Rate.Bytes.Value > most.Rate.Bytes.Value {
				e.Processes, most = &Processes{Role: p.Role, PID: p.PID, Recorded: profiled || r.inside(p)}, e
			}
		}
		if most == nil && len(of) > 1 {
			if most = r.grows(f.together(of, memory)); most != nil && most.Growth >= r.agentsTake(most.Growth, of...) {
				most.Processes = &Processes{Role: kind, Recorded: slices.ContainsFunc(of, func(p *snapshot.TreeProcess) bool { return r.inside(p) })}
			} else {
				most = nil
			}
		}
		if most != nil {
			most.Processes.Alike, most.Processes.Of = grow, there
			most.Processes.Alone = !slices.ContainsFunc(of, func(p *snapshot.TreeProcess) bool {
				n := len(p.Points)
				growth := memory(&p.Points[n-1]) - memory(&p.Points[int(beginning*float64(n))])
				return p.PID != most.Processes.PID && f.lasts(p) && 2*growth >= most.Growth
			})
			out = append(out, *most)
		}
	}
	slices.SortStableFunc(out, func(a, b Reserve) int { return cmp.Compare(b.Rate.Bytes.Value, a.Rate.Bytes.Value) })
	return out[:min(len(out), mostGrowing)]
}

// mostGrowing is of how many kinds of processes it is reported that they grow.
const mostGrowing = 5

// grows is how y grew steadily after its beginning; nil where it did not.
func (r *Result) grows(x, y []float64) *Reserve {
	if len(x) == 0 {
		return nil
	}
	// A process that ends gives back what it has, one part after the other.
	for n := len(y) - 1; n > 0 && n >= len(x)-endingLooks && y[n] < given*y[n-1]; n-- {
		y = y[:n]
	}
	x = x[:len(y)]
	from, _ := slices.BinarySearch(x, x[0]+beginning*(x[len(x)-1]-x[0]))
	if len(x)-from < series.Testable {
		return nil
	}
	x, rest := risingFloors(x[from:], y[from:])
	if rest == nil || !steadily(r.options.Without, x, rest) {
		return nil
	}
	last := len(rest) - 1
	if rest[last]-rest[0] < leastGrowth {
		return nil
	}
	return &Reserve{
		Device: snapshot.Device{Kind: snapshot.Process, Name: "processes"}, Meter: cause.Host, Growth: snapshot.Bytes(rest[last] - rest[0]),
		Rate: Rate{Unit: Second, Bytes: trend.Rate(x, rest)}, From: x[0], To: x[last],
	}
}

// growsLate is how y grew in its second half, for a process that did not grow before. What it had before is its parent's for the most
// part, and no measure of growth.
func (r *Result) growsLate(x, y []float64) *Reserve {
	last := len(x) - 1
	third, _ := slices.BinarySearch(x, x[0]+beginning*(x[last]-x[0]))
	half, _ := slices.BinarySearch(x, (x[0]+x[last])/2)
	if half == third || last == half || (y[last]-y[half])/(x[last]-x[half]) < faster*(y[half]-y[third])/(x[half]-x[third]) {
		return nil // it grew before, and slows down
	}
	late := slices.Clone(y[half:])
	for i := range late {
		late[i] -= y[half]
	}
	return r.grows(x[half:], late)
}

// growsBriefly is how y grew for a process with too few looks to judge it: after its beginning, at each look, and hardly less at the
// last one than before. A process that only takes what it needs takes less and less.
func (r *Result) growsBriefly(x, y []float64) *Reserve {
	last := len(x) - 1
	from, _ := slices.BinarySearch(x, x[0]+beginning*(x[last]-x[0]))
	n := last - from
	if n+1 >= series.Testable || n < fewestRises || y[last]-y[from] < leastGrowth || y[last]-y[last-1] < lastShare*(y[last]-y[from])/float64(n) {
		return nil
	}
	for i := from; i < last; i++ {
		if y[i+1] <= y[i] {
			return nil
		}
	}
	return &Reserve{
		Device: snapshot.Device{Kind: snapshot.Process, Name: "processes"}, Meter: cause.Host, Growth: snapshot.Bytes(y[last] - y[from]),
		Rate: Rate{Unit: Second, Bytes: trend.Rate(x[from:], y[from:])}, From: x[from], To: x[last],
	}
}

// ProcessesWouldShow reports whether a process of a kind, had it grown by so many bytes a second more, would be said to
// grow. It is found by trial.
func (r *Result) ProcessesWouldShow(kind string, rate float64) bool {
	if r.run.Tree == nil || len(r.run.Tree.Processes) == 0 {
		return false
	}
	f := newForest(r.run.Tree, r.recorded)
	return slices.ContainsFunc(f.kinds[kind], func(p *snapshot.TreeProcess) bool {
		x, y := make([]float64, len(p.Points)), make([]float64, len(p.Points))
		for i := range p.Points {
			at := &p.Points[i]
			x[i] = at.Time.Sub(p.Points[0].Time).Seconds()
			y[i] = float64(at.Anonymous+at.Swapped) + rate*x[i]
		}
		return f.lasts(p) && r.grows(x, y) != nil
	})
}

// sharedMemory is how shared memory grew steadily: of a process that has it, else of the command's control
// group where that is its own, else of the files in /dev/shm; nil where none did.
func (r *Result) sharedMemory(f *forest) *Reserve {
	var all []Reserve
	every := &forest{tree: f.tree, began: f.began, ended: f.ended, times: f.times, kinds: make(map[string][]*snapshot.TreeProcess)}
	for _, p := range f.all {
		if slices.ContainsFunc(p.Points, func(at snapshot.ProcessPoint) bool { return at.Shared >= leastGrowth }) {
			every.kinds[p.Role] = append(every.kinds[p.Role], p)
		}
	}
	all = r.growingOf(every, func(p *snapshot.ProcessPoint) snapshot.Bytes { return p.Shared })
	var x, group, files []float64
	own := true
	for i := range f.tree.Host {
		h := &f.tree.Host[i]
		own = own && h.Group.Others == 0
		x = append(x, h.Time.Sub(f.began).Seconds())
		group, files = append(group, float64(max(0, h.Group.Shared))), append(files, float64(max(0, h.SegmentBytes)))
	}
	for _, y := range [][]float64{group, files} {
		if len(all) > 0 || len(x) == 0 {
			break
		}
		if e := r.grows(x, y); e != nil && (own || &y[0] == &files[0]) {
			e.Processes = &Processes{Role: "shared memory", OrOthers: !own}
			all = append(all, *e)
		}
	}
	if len(all) == 0 {
		return nil
	}
	e := all[0]
	e.Processes.Shared = true
	for i := range f.tree.Host { // they go with the last process
		e.Processes.Segments = max(e.Processes.Segments, f.tree.Host[i].Segments)
		e.Processes.Folder = cmp.Or(f.tree.Host[i].Folder, e.Processes.Folder)
	}
	if e.Processes.PID == 0 {
		e.Processes.Writer = f.writer()
	}
	return &e
}
