package diff

import (
	"cmp"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// Child is another recorded process that leaks. It represents all leaking processes of its kind.
type Child struct {
	Role string // "loader worker 3"
	PID  int
	// Machine is where it ran, in a run on several machines; else "".
	Machine string
	// Alike counts the processes of that kind that leak, and Of all that were recorded.
	Alike, Of int
	Result    *Result // its findings name it
}

// Leaked is the growth of a child's leaks, per second and in all.
func (c *Child) Leaked() (rate float64, all snapshot.Bytes) {
	pace := c.Result.stepsASecond()
	for i := range c.Result.Findings {
		if f := &c.Result.Findings[i]; f.Verdict == Leak {
			all += f.Growth().Bytes
			rate += f.Rate.Bytes.Value * pace
		}
	}
	return rate, all
}

// standsBefore reports whether a child represents its kind better than another: it leaks more. If only one of the two
// leaks has a known holder, half as much is enough for that one.
func (c *Child) standsBefore(other *Child) bool {
	_, mine := c.Leaked()
	_, its := other.Leaked()
	if held := c.held(); held != other.held() {
		if held {
			return 2*mine >= its
		}
		return mine > 2*its
	}
	return mine > its
}

// held reports whether the child's first leak has a known holder.
func (c *Child) held() bool {
	i := slices.IndexFunc(c.Result.Findings, func(f Finding) bool { return f.Verdict == Leak })
	return i >= 0 && !c.Result.Findings[i].Unheld()
}

// judgeChildren judges the other recorded processes with the same options, and sets Children, Open, undecided and
// after. The part of this process after its last step is among the run's children.
func (r *Result) judgeChildren(o Options) {
	kinds := make(map[string]*Child)
	of := make(map[string]int)
	r.Open, r.undecided = make(map[string]bool), make(map[string]int)
	for _, child := range r.run.Children {
		kind := KindOf(child.Role)
		of[kind]++
		own := o
		own.Against = nil
		if o.Against != nil {
			if i := slices.IndexFunc(o.Against.Children, func(c *snapshot.Run) bool { return KindOf(c.Role) == kind }); i >= 0 {
				own.Against = o.Against.Children[i]
			}
		}
		result, err := own.Analyze(child)
		if child.AfterStep > 0 && err == nil {
			r.after = result
		}
		if err != nil || result.Leaks() == 0 {
			doubt := err == nil && result.Count(Inconclusive) > 0
			r.Open[kind] = r.Open[kind] || err != nil || doubt
			if doubt && child.AfterStep == 0 && len(child.Snapshots) >= series.Testable {
				r.undecided[kind]++
			}
			continue // too short, or not comparable with the other run
		}
		result.withoutGrains()
		c := &Child{Role: child.Role, PID: child.PID, Machine: r.run.Machine, Alike: 1, Result: result}
		most := kinds[kind]
		if most == nil {
			kinds[kind] = c
			r.Children = append(r.Children, c)
			continue
		}
		c.Alike = most.Alike + 1
		if c.standsBefore(most) {
			*most = *c
		}
		most.Alike = c.Alike
	}
	for _, c := range r.Children {
		c.Of = of[KindOf(c.Role)]
		for i := range c.Result.Findings {
			f := &c.Result.Findings[i]
			f.Child = c
			if f.Rate.Unit == Step && KindOf(c.Role) == loaderWorker {
				f.Rate.Unit = Batch
			}
		}
	}
	slices.SortStableFunc(r.Children, func(a, b *Child) int { return cmp.Compare(b.Result.Drain(), a.Result.Drain()) })
}

// grain is the least share of the largest leak's rate for other leaks without a line of the program: a loader worker
// that retained 781 KiB a batch gained 62 B a batch where multiprocessing sends its results.
const grain = 1e-3

// withoutGrains removes leaks below that share that have no line of the program.
func (r *Result) withoutGrains() {
	most := 0.
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Verdict == Leak {
			most = max(most, f.Rate.Bytes.Value)
		}
	}
	r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool {
		return f.Verdict == Leak && f.Rate.Bytes.Value < grain*most && frame.Headline(f.Rows[0].Frames) < 0
	})
}

// loaderWorker is the kind of PyTorch's loader workers, whose steps are batches.
const loaderWorker = "loader worker"

// KindOf is the role without the number of one of several processes: "loader worker", and "fork of train.py" for
// "fork 2 of train.py". A version number stays. The step after which a process has taken none is removed, too.
func KindOf(role string) string {
	const digits = "0123456789"
	kind := role
	if at := strings.LastIndex(kind, " of rank "); at >= 0 && strings.Trim(kind[at+len(" of rank "):], digits) == "" {
		kind = kind[:at]
	}
	if of, step, ok := strings.Cut(kind, " after step "); ok && step != "" && strings.Trim(step, digits) == "" {
		return of + " after its last step"
	}
	if bare := strings.TrimRight(kind, digits+":"); bare != kind && bare != "" && !strings.HasSuffix(bare, ".") {
		kind = strings.TrimRight(bare, " -_#:")
	}
	if number, of, ok := strings.Cut(strings.TrimPrefix(kind, "fork "), " of "); ok && strings.HasPrefix(kind, "fork ") && strings.Trim(number, digits) == "" {
		kind = "fork of " + of
	}
	return cmp.Or(kind, role)
}

// among is the role of the judged process if another process started it and it is one of several: one of three
// trainers without ranks, or a fork. It is "" for the command's own process, which needs no name.
func (r *Result) among() string {
	tree, role := r.run.Tree, r.Last.Role
	if tree == nil || len(tree.Processes) == 0 {
		return ""
	}
	if r.Last.Producer == hostProducer {
		return r.grower()
	}
	if r.Last.PID == 0 || tree.Processes[0].PID == r.Last.PID {
		return ""
	}
	at := slices.IndexFunc(tree.Processes, func(p snapshot.TreeProcess) bool { return p.PID == r.Last.PID })
	if at >= 0 && strings.HasPrefix(tree.Processes[at].Role, "fork ") {
		return tree.Processes[at].Role
	}
	if strings.Contains(role, " of rank ") || KindOf(role) == role { // its rank identifies it, counted from 0
		return ""
	}
	return role
}

// grower is the role of the processes with more than half of all growth, if snapshots cover the programs of all
// processes together; "" if that is the command's own process, or no role has so much.
func (r *Result) grower() string {
	tree := r.run.Tree
	gained, of := make(map[string]snapshot.Bytes), make(map[string][]*snapshot.TreeProcess)
	all := snapshot.Bytes(0)
	for i := range tree.Processes {
		p := withoutEnd(&tree.Processes[i])
		first := &p.Points[0]
		if grown := lastOf(p) - first.Anonymous - first.Swapped; grown > 0 {
			kind := KindOf(p.Role)
			gained[kind], of[kind] = gained[kind]+grown, append(of[kind], p)
			all += grown
		}
	}
	for kind, grown := range gained {
		switch {
		case 2*grown <= all:
		case len(of[kind]) > 1:
			return kind
		case of[kind][0].PID != tree.Processes[0].PID:
			return of[kind][0].Role
		}
	}
	return ""
}

// accounts reports whether the leaks of a child, or of all children like it, are most of a growth of processes.
func accounts(children []*Child, e *Reserve) bool {
	return e.Processes != nil && slices.ContainsFunc(children, func(c *Child) bool {
		rate, _ := c.Leaked()
		if e.Processes.PID == 0 {
			rate *= float64(c.Alike)
		}
		return KindOf(c.Role) == KindOf(e.Processes.Role) && !e.Processes.Shared && 2*rate >= e.Rate.Bytes.Value
	})
}
