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
	// beginning is the share of a process's time in which it takes what it needs: imports, data, queues.
	beginning = 1. / 3
	// toTheEnd is the share of the record's time after which a process must still exist for its growth to matter.
	// Otherwise its memory has been freed.
	toTheEnd = 2. / 3
	// endingLooks is the number of last looks at which a process may be ending. given is the most memory that it has
	// left then, as a share of the look before.
	endingLooks, given = 3, 0.9
	// faster is how much faster than before, after its beginning, a process that began to grow late must grow in its
	// second half.
	faster = 1.5
	// fewestRises is how many rises after its beginning put a process with few looks in doubt. lastShare is the least
	// size of the last rise, as a share of the mean rise.
	fewestRises, lastShare = 2, 0.5
	// leastGrowth is the least growth to report: less than any program takes to begin.
	leastGrowth = 1 << 20
)

// Processes is one of the command's processes in which nothing was recorded, or several of one role together, or
// shared memory, or the kernel's memory for the command.
type Processes struct {
	Role string // "loader worker 3"; for several, the common part of their roles
	PID  int    // 0 for several together
	// Alike counts the processes of that kind that grow, and Of all of that kind.
	Alike, Of int
	// Alone: none of the others grew by half as much.
	Alone    bool
	Recorded bool // snapshots of the process explain less than half of the growth
	Shared   bool // shared memory grows
	Kernel   bool // the kernel's memory for the command grows
	// Successive: the processes follow each other, and each later one takes more.
	Successive bool
	// OrOthers: other programs may have created the files of shared memory.
	OrOthers bool
	Segments int64 // with Shared: the most files of shared memory at one time; 0 if unknown
	// Folder has most of them. Writer is the role of the process, or of several alike, that wrote about as much as
	// they grew; "" if unknown.
	Folder, Writer string
}

// hostProducer is the producer of snapshots of a command's programs, without an agent.
const hostProducer = "memdiag record"

// growingProcesses returns the command's processes, and kinds of them, that grew steadily and in which nothing was
// recorded. It adds shared memory, and the kernel's memory, that grew.
func (r *Result) growingProcesses() []Reserve {
	if r.run.Tree == nil || len(r.run.Tree.Processes) == 0 || r.Last.Producer == hostProducer && r.Leaks() > 0 {
		return nil // snapshots of all programs show it
	}
	t := newForest(r.run.Tree, r.recorded)
	private := func(p *snapshot.ProcessPoint) snapshot.Bytes { return p.Anonymous + p.Swapped }
	out := r.growingOf(t, private)
	if len(out) == 0 {
		out = r.growingSuccessors(t, private)
	}
	if len(out) == 0 && len(t.kinds) > 1 { // each process may have its own role
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

// recorded reports whether snapshots cover all of a process's memory.
func (r *Result) recorded(p *snapshot.TreeProcess) bool {
	whole := slices.ContainsFunc(r.Series.Devices, func(d snapshot.Device) bool { return d.Kind == snapshot.Process })
	return whole && p.Points[len(p.Points)-1].Recorded
}

// profiled reports whether snapshots cover a part of a process's memory, as JAX's profiles on the CPU cover its
// arrays.
func (r *Result) profiled(p *snapshot.TreeProcess) bool {
	part := slices.ContainsFunc(r.Series.Devices, func(d snapshot.Device) bool { return d.Kind.InProcess() })
	return part && p.Points[len(p.Points)-1].Recorded && !r.recorded(p) && !r.inside(p)
}

// profiledGrowth is the growth of the process's recorded sites.
func (r *Result) profiledGrowth() (grown snapshot.Bytes) {
	for i := range r.Rows {
		if r.Rows[i].Device.Kind.InProcess() {
			grown += r.Rows[i].Growth().Bytes
		}
	}
	return grown
}

// mostKinds is how many roles are judged, those with most memory; the time for each is proportional to the number of
// looks.
const mostKinds = 64

// growingOf returns a reserve for each kind of processes of which one grows, or all together.
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
			// The last look at a process may come up to one interval before its end.
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
		if most == nil && r.undecided[kind] > 0 {
			if most = r.growsUnevenly(f.together(of, memory)); most != nil && most.Growth >= r.agentsTake(most.Growth, of...) {
				most.Processes = &Processes{Role: kind, Recorded: true}
				if len(of) == 1 {
					most.Processes.Role, most.Processes.PID = of[0].Role, of[0].PID
				}
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

// mostGrowing is how many kinds of growing processes are reported.
const mostGrowing = 5

// grows returns the steady growth of y after its beginning; nil if there is none.
func (r *Result) grows(x, y []float64) *Reserve {
	return r.growsAs(x, y, steadily)
}

// growsUnevenly returns growth of y that goes on up to the end. It is not evidence enough alone: on a busy machine, a
// process's speed varies, and so does its growth.
func (r *Result) growsUnevenly(x, y []float64) *Reserve {
	return r.growsAs(x, y, goesOn)
}

// growsAs returns the growth of y after its beginning, if its floors rise as is asked.
func (r *Result) growsAs(x, y []float64, as func(w Without, x, rest []float64) bool) *Reserve {
	if len(x) == 0 {
		return nil
	}
	// A process that ends frees its memory part by part.
	for n := len(y) - 1; n > 0 && n >= len(x)-endingLooks && y[n] < given*y[n-1]; n-- {
		y = y[:n]
	}
	x = x[:len(y)]
	from, _ := slices.BinarySearch(x, x[0]+beginning*(x[len(x)-1]-x[0]))
	if len(x)-from < series.Testable {
		return nil
	}
	x, rest := risingFloors(x[from:], y[from:])
	if rest == nil || !as(r.options.Without, x, rest) {
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

// growsLate returns the growth of y in its second half, for a process that did not grow before. Its memory from
// before mostly belongs to its parent, and is no measure of growth.
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

// growsBriefly returns the growth of y for a process with too few looks to judge it: after its beginning it rose at
// each look, and at the last one hardly less than before. A process that only takes what it needs takes less and
// less.
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

// ProcessesWouldShow reports whether a process of a kind would be reported as growing if it had grown by so many more
// bytes a second. It is found by trial.
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

// sharedMemory returns the steady growth of shared memory: of a process that has it; else of the command's control
// group, if that is its own; else of the files in /dev/shm; nil if there is none.
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
	for i := range f.tree.Host { // the files are removed with the last process
		e.Processes.Segments = max(e.Processes.Segments, f.tree.Host[i].Segments)
		e.Processes.Folder = cmp.Or(f.tree.Host[i].Folder, e.Processes.Folder)
	}
	if e.Processes.PID == 0 {
		e.Processes.Writer = f.writer()
	}
	return &e
}
