package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// RoleSeries is the memory of the command's processes of one role over time.
type RoleSeries struct {
	Name  string    // "loader worker"; for a single growing process "loader worker 3"
	Most  int       // most processes at one time; 0 for shared memory
	Bytes []float64 // at each look
	Rate  Rate      // if it grows steadily, or a line in it leaks; else zero Rate
	Leak  bool      // a line in it leaks
}

// matters is the share of the highest total that a role must have held at some time to be more than a helper.
const matters = 0.05

// Roles returns the memory of the command's processes by role, over the seconds since the first look. The order is:
// the process that was started, roles that grow, the others by memory, and shared memory. Roles beyond most are
// combined into one. A page that a fork shares counts for the process that forked, if the kernel reported it. It is
// nil unless a role grows or two matter.
func (r *Result) Roles(most int) (seconds []float64, roles []RoleSeries) {
	if r.run.Tree == nil || len(r.run.Tree.Processes) == 0 {
		return nil, nil
	}
	g := r.byRole()
	held := make(map[string]float64)
	g.each(func(role string, _ int, bytes float64) { held[role] += bytes })
	order := slices.SortedFunc(maps.Keys(held), func(a, b string) int {
		return cmp.Or(g.rank(a)-g.rank(b), cmp.Compare(held[b], held[a]), cmp.Compare(a, b))
	})
	at := make(map[string]int)
	for i, name := range order {
		at[name] = min(i, most-1)
	}
	for _, name := range order[:min(len(order), most)] {
		s := g.grows[name]
		s.Name, s.Bytes = name, make([]float64, len(g.times))
		roles = append(roles, s)
	}
	counts := make([]int, len(roles)*len(g.times))
	g.each(func(role string, i int, bytes float64) {
		to := at[role]
		roles[to].Bytes[i] += bytes
		n := &counts[to*len(g.times)+i]
		*n++
		roles[to].Most = max(roles[to].Most, *n)
	})
	if s := g.shared(); slices.Max(s.Bytes) > 0 {
		roles = append(roles, s)
	}
	if rest := len(order) - most + 1; rest > 1 {
		roles[most-1] = RoleSeries{Name: fmt.Sprintf("%d other roles", rest), Most: 1, Bytes: roles[most-1].Bytes}
	}
	highest := 0.
	for i, t := range g.times {
		seconds = append(seconds, t.Sub(g.times[0]).Seconds())
		all := 0.
		for k := range roles {
			all += roles[k].Bytes[i]
		}
		highest = max(highest, all)
	}
	helps := func(s RoleSeries) bool { return slices.Max(s.Bytes) < matters*highest }
	if last := len(roles) - 1; roles[last].Most == 0 && helps(roles[last]) && roles[last].Rate.Unit == "" {
		roles = roles[:last]
	}
	if len(g.grows) == 0 && len(slices.DeleteFunc(slices.Clone(roles), helps)) < 2 {
		return nil, nil
	}
	return seconds, roles
}

// byRole is a tree's processes by role; single processes that grow are separate.
type byRole struct {
	tree    *snapshot.Tree
	private [][]snapshot.Bytes    // [process][look]
	times   []time.Time           // of looks, ascending
	index   map[time.Time]int     // into times
	alone   map[int]bool          // PIDs of processes that grow while others of their role do not
	grows   map[string]RoleSeries // by name
	first   string                // the role of the process that was started
}

// sharedMemory is the role name of shared memory.
const sharedMemory = "shared memory"

func (r *Result) byRole() *byRole {
	g := &byRole{tree: r.run.Tree, private: PrivateBytes(r.run.Tree), index: make(map[time.Time]int), alone: make(map[int]bool), grows: make(map[string]RoleSeries)}
	add := func(role string, pid int, alone bool, s RoleSeries) {
		if alone {
			g.alone[pid] = true
		} else {
			role = KindOf(role)
		}
		if _, ok := g.grows[role]; !ok {
			g.grows[role] = s
		}
	}
	for _, c := range r.Children {
		add(c.Role, c.PID, c.Alike == 1 && c.Of > 1, RoleSeries{Rate: c.Result.Findings[0].Rate, Leak: true})
	}
	for _, e := range r.Unaccounted() {
		switch p := e.Processes; {
		case p == nil:
		case p.Kernel:
		case p.Shared:
			g.grows[sharedMemory] = RoleSeries{Rate: e.Rate}
		default:
			add(p.Role, p.PID, p.PID != 0 && p.Alike == 1 && p.Of > 1, RoleSeries{Rate: e.Rate})
		}
	}
	for i := range g.tree.Processes {
		for _, at := range g.tree.Processes[i].Points {
			g.index[at.Time] = 0
		}
	}
	g.times = slices.SortedFunc(maps.Keys(g.index), time.Time.Compare)
	for i, t := range g.times {
		g.index[t] = i
	}
	g.first = g.role(&g.tree.Processes[0])
	return g
}

// rank is 0 for the process that was started, 1 for roles that grow, and 2 for others.
func (g *byRole) rank(role string) int {
	switch _, grows := g.grows[role]; {
	case role == g.first:
		return 0
	case grows:
		return 1
	}
	return 2
}

func (g *byRole) role(p *snapshot.TreeProcess) string {
	switch {
	case p.Role == "":
		return fmt.Sprintf("process %d", p.PID)
	case g.alone[p.PID]:
		return p.Role
	}
	return KindOf(p.Role)
}

// each calls f with the private memory of each process at each look; at is an index of times.
func (g *byRole) each(f func(role string, at int, bytes float64)) {
	for i := range g.tree.Processes {
		p := &g.tree.Processes[i]
		role := g.role(p)
		for k := range p.Points {
			f(role, g.index[p.Points[k].Time], float64(g.private[i][k]))
		}
	}
}

// shared is shared memory: the size of its known files, or the shared memory of the process that has most, whichever
// is larger.
func (g *byRole) shared() RoleSeries {
	s := g.grows[sharedMemory]
	s.Name, s.Bytes = sharedMemory, make([]float64, len(g.times))
	for i := range g.tree.Processes {
		for _, at := range g.tree.Processes[i].Points {
			s.Bytes[g.index[at.Time]] = max(s.Bytes[g.index[at.Time]], float64(at.Shared))
		}
	}
	for i := range g.tree.Host {
		if at, ok := g.index[g.tree.Host[i].Time]; ok {
			s.Bytes[at] = max(s.Bytes[at], float64(g.tree.Host[i].SegmentBytes))
		}
	}
	return s
}

// RoleNow is the processes of one role that exist now.
type RoleNow struct {
	Name    string // "loader worker"
	Count   int
	Private snapshot.Bytes
}

// RolesNow returns the roles at the last look of a process tree, most memory first; nil for no tree.
func RolesNow(tree *snapshot.Tree) (roles []RoleNow) {
	if tree == nil {
		return nil
	}
	var last time.Time
	for i := range tree.Processes {
		if points := tree.Processes[i].Points; points[len(points)-1].Time.After(last) {
			last = points[len(points)-1].Time
		}
	}
	private := PrivateBytes(tree)
	index := make(map[string]int)
	for i := range tree.Processes {
		p := &tree.Processes[i]
		at := len(p.Points) - 1
		if p.Points[at].Time.Before(last) {
			continue // it has ended
		}
		name := KindOf(p.Role)
		if _, known := index[name]; !known {
			index[name] = len(roles)
			roles = append(roles, RoleNow{Name: name})
		}
		r := &roles[index[name]]
		r.Count++
		r.Private += private[i][at]
	}
	slices.SortFunc(roles, func(a, b RoleNow) int { return cmp.Or(cmp.Compare(b.Private, a.Private), cmp.Compare(a.Name, b.Name)) })
	return roles
}
