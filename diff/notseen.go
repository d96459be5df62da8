package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// leastBrief is the least memory of a process that is reported as too brief: more than a shell and its tools take.
const leastBrief = 8 << 20

// namedRoles is how many roles are named, of processes that were watched only from outside.
const namedRoles = 3

// notSeen returns Result.NotSeen.
func (r *Result) notSeen() (out []string) {
	if r.run.Role != "" {
		return nil // its parent run reports it
	}
	for _, u := range r.run.Info.Unseen {
		out = append(out, u.What)
	}
	for _, text := range []string{r.unwatched, r.afterSteps()} {
		if text != "" {
			out = append(out, text)
		}
	}
	info := &r.run.Info
	if r.run.Tree == nil {
		const hidden = "other processes of the command: the system gave no information"
		if info.Command != nil && info.Finished != nil && !info.Followed && len(r.run.Ranks) == 0 && !slices.Contains(out, hidden) {
			out = append(out, hidden)
		}
		return out
	}
	if r.Last.Producer == hostProducer {
		return out // the result is by process, not by line, and says so
	}
	outside, brief := make(map[string]int), 0
	most := snapshot.Bytes(0)
	for i := range r.run.Tree.Processes {
		most = max(most, lastOf(&r.run.Tree.Processes[i]))
	}
	grown := make(map[string]bool) // kinds of processes whose growth is reported
	for _, c := range r.Children {
		grown[KindOf(c.Role)] = true
	}
	for _, e := range r.Unaccounted() {
		if e.Processes != nil && !e.Processes.Shared {
			grown[KindOf(e.Processes.Role)] = true
		}
	}
	for i := range r.run.Tree.Processes {
		p := &r.run.Tree.Processes[i]
		switch {
		case r.inside(p) || slices.ContainsFunc(p.Points, func(at snapshot.ProcessPoint) bool { return at.Recorded }):
		case len(p.Points) < series.Testable:
			if lastOf(p) >= leastBrief && float64(lastOf(p)) >= matters*float64(most) && !grown[KindOf(p.Role)] {
				brief++
			}
		default:
			outside[KindOf(p.Role)]++
		}
	}
	short := make(map[string]int)
	for _, c := range r.run.Children {
		if len(c.Snapshots) < series.Testable && c.AfterStep == 0 {
			short[KindOf(c.Role)]++
		}
	}
	for kind, n := range r.undecided {
		if !grown[kind] {
			short[kind] += n
		}
	}
	if len(short) > 0 {
		out = append(out, "allocations in "+processesOf(short)+", recorded too briefly to judge")
	}
	if len(outside) > 0 {
		out = append(out, "allocations in "+processesOf(outside)+", whose total memory alone was recorded")
	}
	if text := r.seldom(); text != "" {
		out = append(out, text)
	}
	if len(outside) > mostKinds {
		out = append(out, fmt.Sprintf("growth of the %d smallest roles", len(outside)-mostKinds))
	}
	if brief > 0 {
		out = append(out, fmt.Sprintf("growth of %s that ended too soon to measure", processCount(brief)))
	}
	return out
}

// crowded is the least number of processes with which looks at them may become rare.
const crowded = 64

// seldom says that looks were too rare to see processes grow, because there were so many; "" otherwise.
func (r *Result) seldom() string {
	if r.run.Tree == nil || len(r.run.Tree.Host) == 0 {
		return ""
	}
	host, most := r.run.Tree.Host, 0
	whole := host[len(host)-1].Time.Sub(host[0].Time)
	late := 0
	for _, h := range host {
		most = max(most, h.Processes)
		if float64(h.Time.Sub(host[0].Time)) >= beginning*float64(whole) {
			late++
		}
	}
	if most < crowded || late >= series.Testable {
		return ""
	}
	return fmt.Sprintf("growth of up to %d processes, which were checked only %d times after the start", most, late)
}

// lastOf is the private memory of a process at its last look.
func lastOf(p *snapshot.TreeProcess) snapshot.Bytes {
	at := &p.Points[len(p.Points)-1]
	return at.Anonymous + at.Swapped
}

// inside reports whether a process was recorded in addition to the judged one.
func (r *Result) inside(p *snapshot.TreeProcess) bool {
	return slices.ContainsFunc(r.run.Children, func(c *snapshot.Run) bool { return c.Is(p) })
}

// processesOf is "5 processes (loader worker × 4, perl)", the most frequent role first.
func processesOf(roles map[string]int) string {
	names := slices.SortedFunc(maps.Keys(roles), func(a, b string) int { return cmp.Or(roles[b]-roles[a], cmp.Compare(a, b)) })
	all := 0
	var named []string
	for i, name := range names {
		n := roles[name]
		all += n
		switch {
		case i >= namedRoles:
		case n > 1:
			named = append(named, fmt.Sprintf("%s × %d", name, n))
		default:
			named = append(named, name)
		}
	}
	if rest := len(names) - namedRoles; rest > 0 {
		named = append(named, fmt.Sprintf("%d more", rest))
	}
	return fmt.Sprintf("%s (%s)", processCount(all), strings.Join(named, ", "))
}

func processCount(n int) string {
	if n == 1 {
		return "1 process"
	}
	return fmt.Sprintf("%d processes", n)
}
