package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

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

// sentence says by how much they grow.
func (p *Processes) sentence(e *Reserve) string {
	who := p.Role
	switch {
	case p.Kernel:
		who = "the kernel's memory for the command"
	case p.Successive:
		who = "the most that a process of " + p.Role + " takes"
	case p.PID == 0 && !p.Shared:
		who = "processes of " + p.Role + " together"
	case p.PID != 0:
		who += fmt.Sprintf(" (process %d)", p.PID)
	}
	if p.PID != 0 && p.Shared {
		who = "shared memory of " + who
	}
	rate := e.Rate.Bytes
	text := fmt.Sprintf("%s grew steadily by %s a second (%s to %s, 95 %% interval), %s in %s",
		who, snapshot.FormatBytes(rate.Value), snapshot.FormatBytes(rate.Low), snapshot.FormatBytes(rate.High), e.Growth, Second.Text(e.To-e.From))
	switch {
	case p.Alike == 2 && p.Of == 2:
		text += ", and so did the other process of this kind"
	case p.Alike == 2:
		text += fmt.Sprintf(", and so did 1 other of %d processes of this kind", p.Of)
	case p.Alike > 2:
		text += fmt.Sprintf(", and so did %d others of %d processes of this kind", p.Alike-1, p.Of)
	case p.Alone && p.PID != 0 && p.Of > 1:
		text += fmt.Sprintf(", as the only one of %d processes of this kind", p.Of)
	}
	switch {
	case p.Segments > 1:
		text += fmt.Sprintf(", in up to %s. The line that created them is unknown", p.files())
		if p.OrOthers {
			text += ". Another program of this user may have created them"
		}
		return text
	case p.Shared && p.PID == 0:
		return text + ". The line that allocated it is unknown. Files in a tmpfs count, too"
	case p.Shared:
		return text + ". The line that allocated it is unknown"
	}
	if p.Kernel {
		return text + ". Sockets, pipes and open files that nobody closes are one reason"
	}
	if p.Recorded {
		return text + ". Its recorded stacks do not explain the growth"
	}
	return text + ". Nothing was recorded in it, so the source line is unknown. If it runs Python, run longer: it is recorded once it has grown for some seconds, " +
		"unless it has another user or an environment of its own. If not, use a heap profiler that memdiag reads, such as heaptrack"
}

// Known is what is known of why they grow.
func (p *Processes) Known() string {
	switch {
	case p.Recorded:
		return "its recorded stacks do not explain the growth"
	case p.Kernel:
		return "no process has it"
	}
	return "nothing was recorded in it"
}

// Who is "loader worker 0", "shared memory of loader worker 0" or "processes of loader worker".
func (p *Processes) Who() string {
	switch {
	case p.Shared && p.PID != 0:
		return "shared memory of " + p.Role
	case p.Kernel:
		return p.Role
	case !p.Shared && p.PID == 0:
		return "processes of " + p.Role
	}
	return p.Role
}

// files is "235 files in /dev/shm/tmp1, likely written by loader worker 0".
func (p *Processes) files() string {
	text := fmt.Sprintf("%d files", p.Segments)
	if p.Folder != "" {
		text += " in " + p.Folder
	}
	if p.Writer != "" {
		text += ", likely written by " + p.Writer
	}
	return text
}

// Clause is the same in a few words: "loader worker 0 grows, +20.0 MiB/s, and nothing was recorded in it".
func (p *Processes) clause(e *Reserve) string {
	grows := p.Who() + " grows"
	switch {
	case p.Successive:
		grows = "each new " + p.Role + " uses more memory than the one before"
	case p.Kernel:
	case p.Shared && p.Folder != "" && p.PID == 0:
		return fmt.Sprintf("%s grows, +%s/s, in up to %s", p.Role, snapshot.FormatBytes(e.Rate.Bytes.Value), p.files())
	case !p.Shared && p.PID == 0:
		grows = p.Who() + " grow together"
	}
	return fmt.Sprintf("%s, +%s/s, and %s", grows, snapshot.FormatBytes(e.Rate.Bytes.Value), p.Known())
}

// Clause is String in a few words, of other processes than the recorded one.
func (e *Reserve) Clause() string { return e.Processes.clause(e) }

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

// forest is a tree of processes, by kinds.
type forest struct {
	tree         *snapshot.Tree
	all          []*snapshot.TreeProcess
	began, ended time.Time
	others       []*snapshot.TreeProcess // without snapshots
	times        []time.Time             // at which any was looked at, ascending
	kinds        map[string][]*snapshot.TreeProcess
	numbered     map[int][]*snapshot.TreeProcess            // by PID, ascending by their first looks
	common       map[*snapshot.TreeProcess][]snapshot.Bytes // at each look; nil if none is in common
}

func newForest(tree *snapshot.Tree, recorded func(*snapshot.TreeProcess) bool) *forest {
	f := &forest{tree: tree, kinds: make(map[string][]*snapshot.TreeProcess), common: make(map[*snapshot.TreeProcess][]snapshot.Bytes)}
	common := commonPages(tree)
	f.numbered = make(map[int][]*snapshot.TreeProcess)
	held := make(map[string]snapshot.Bytes)
	for i := range tree.Processes {
		p := withoutEnd(&tree.Processes[i])
		f.all, f.common[p] = append(f.all, p), common[i]
		f.numbered[p.PID] = append(f.numbered[p.PID], p)
		for _, point := range p.Points {
			f.times = append(f.times, point.Time)
		}
		if !recorded(p) {
			f.others = append(f.others, p)
			kind, last := KindOf(p.Role), &p.Points[len(p.Points)-1]
			f.kinds[kind] = append(f.kinds[kind], p)
			held[kind] += last.Anonymous + last.Swapped
		}
	}
	slices.SortFunc(f.times, time.Time.Compare)
	f.times = slices.CompactFunc(f.times, time.Time.Equal)
	f.began, f.ended = f.times[0], f.times[len(f.times)-1]
	if len(f.kinds) > mostKinds {
		most := slices.SortedFunc(maps.Keys(held), func(a, b string) int { return cmp.Or(cmp.Compare(held[b], held[a]), cmp.Compare(a, b)) })
		for _, kind := range most[mostKinds:] {
			delete(f.kinds, kind)
		}
	}
	return f
}

// mostKinds is how many roles are judged, of those that held most; each takes as long as there are looks.
const mostKinds = 64

// withoutEnd is a process without the last looks, if it was exiting then and had given back all, and with a role.
func withoutEnd(p *snapshot.TreeProcess) *snapshot.TreeProcess {
	n := len(p.Points)
	for n > 1 && p.Points[n-1].Anonymous+p.Points[n-1].Swapped == 0 {
		n--
	}
	if n == len(p.Points) && p.Role != "" {
		return p
	}
	cut := *p
	cut.Role, cut.Points = cmp.Or(p.Role, fmt.Sprintf("process %d", p.PID)), p.Points[:n]
	return &cut
}

// lasts reports whether a process was there near the end: what one held that has ended is given back.
func (f *forest) lasts(p *snapshot.TreeProcess) bool {
	return float64(p.Points[len(p.Points)-1].Time.Sub(f.began)) >= toTheEnd*float64(f.ended.Sub(f.began))
}

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

// ends are when processes of a kind ended, ascending, and the most that any had that ended by then.
type ends struct {
	at   []time.Time
	most []snapshot.Bytes
}

func endsOf(of []*snapshot.TreeProcess, memory func(*snapshot.ProcessPoint) snapshot.Bytes) (e ends) {
	last := func(p *snapshot.TreeProcess) *snapshot.ProcessPoint { return &p.Points[len(p.Points)-1] }
	most := snapshot.Bytes(-1)
	for _, p := range slices.SortedFunc(slices.Values(of), func(a, b *snapshot.TreeProcess) int { return last(a).Time.Compare(last(b).Time) }) {
		most = max(most, memory(last(p)))
		e.at, e.most = append(e.at, last(p).Time), append(e.most, most)
	}
	return e
}

// replaced reports whether another process of the same kind had ended before this one began, and had as much: such a
// pool is replaced, and takes no more each time.
func (e ends) replaced(began time.Time, has snapshot.Bytes) bool {
	n, _ := slices.BinarySearchFunc(e.at, began, func(at, began time.Time) int {
		if at.After(began) {
			return 1
		}
		return -1
	})
	return n > 0 && e.most[n-1] >= has
}

// inherited is what a process had from its parent if it is a fork of it. It copies ever more of that as either writes, which
// does not add to what it has.
func (f *forest) inherited(p *snapshot.TreeProcess) snapshot.Bytes {
	first := &p.Points[0]
	of := f.numbered[p.Parent]
	after, _ := slices.BinarySearchFunc(of, first.Time, func(q *snapshot.TreeProcess, t time.Time) int {
		if q.Points[0].Time.After(t) {
			return 1
		}
		return -1
	})
	if after > 0 {
		points := of[after-1].Points
		at, ok := slices.BinarySearchFunc(points, first.Time, func(at snapshot.ProcessPoint, t time.Time) int { return at.Time.Compare(t) })
		if ok {
			return min(first.Anonymous, points[at].Anonymous)
		}
	}
	return first.Anonymous
}

// together is what processes held at each moment in all, from when the first one began until the last one ended. It is empty where that was long before the
// end, since they gave it back.
func (f *forest) together(of []*snapshot.TreeProcess, memory func(*snapshot.ProcessPoint) snapshot.Bytes) (x, y []float64) {
	x, y = make([]float64, len(f.times)), make([]float64, len(f.times))
	for i, at := range f.times {
		x[i] = at.Sub(f.began).Seconds()
	}
	first, last := len(x)-1, 0
	for _, p := range of {
		common := f.common[p]
		inherited := f.inherited(p)
		for i := range p.Points {
			at, _ := slices.BinarySearchFunc(f.times, p.Points[i].Time, time.Time.Compare)
			has := memory(&p.Points[i])
			if common != nil && common[i] > 0 {
				has = max(0, has-inherited)
			}
			y[at] += float64(has)
			first, last = min(first, at), max(last, at)
		}
	}
	if x[last] < toTheEnd*x[len(x)-1] {
		return nil, nil
	}
	return x[first : last+1], y[first : last+1]
}

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
