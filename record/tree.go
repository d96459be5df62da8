package record

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/processes"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// ProcessesName is the file of a run, or of a rank of it, that holds the memory of each
// process: comma-separated, a line a process and moment.
func ProcessesName(rank int) string {
	if rank == snapshot.NoRank {
		return "processes.csv"
	}
	return "processes" + rundir.RankSuffix(rank) + ".csv"
}

const (
	// mostProcesses is of how many processes the memory is recorded at a moment: of those
	// that have most.
	mostProcesses = 512
	// mostPoints is how many lines there are before the time between them doubles.
	mostPoints = 20_000
	// young is how long a process may yet become another: by exec, or by giving itself a name. Its role is found again each time it
	// is twice as old, and then after so long.
	young = 10 * time.Second
)

// tree follows the processes of a command. One that outlives its parent stays in it.
type tree struct {
	root    int
	known   map[processID]*followed
	orphans orphans
	written bool // what they write is asked for
	// brief are the parents of processes that had ended by the second look.
	brief map[int]bool
	last  time.Time // when the last look was
	// largest is the most processes that there were at once, and hidden the most that the system told nothing of.
	largest, hidden int
}

// processID tells a process from others that had its number.
type processID struct {
	pid     int
	started int64
}

// followed is a process that was seen.
type followed struct {
	snapshot.TreeProcess
	first  time.Time
	begun  snapshot.Bytes // private memory at its first look
	name   string         // of its program, as the kernel has it, when its role was found
	asked  time.Time      // … and when that was
	rank   string         // in its environment
	writer bool           // it has had a checkpoint open for writing
	agent  int            // its number as it sees it itself, in a container
	status status         // at the last look
	then   used           // … and what it had taken by then
	named  used           // what it had taken when its role was found
}

func newTree(root int, agent string) *tree {
	command, _ := readStat(root) // else no orphan is known by its group
	return &tree{root: root, known: make(map[processID]*followed), brief: make(map[int]bool), orphans: orphans{agent: agent, root: command}}
}

// look lists the processes that there are, the root first.
func (t *tree) look(now time.Time) []process {
	all, hidden := processTree(t.root)
	t.hidden = max(t.hidden, hidden)
	here := newListed(all)
	for id, f := range t.known {
		if here.in[id] {
			continue
		}
		if p, ok := readStat(id.pid); !ok || p.processID != id || p.state == 'Z' {
			if f.first.Equal(t.last) {
				t.brief[f.Parent] = true
			}
			delete(t.known, id) // it has ended
			continue
		}
		here.add(id.pid, processTree)
	}
	for _, pid := range t.orphans.look(procFolder) {
		here.add(pid, processTree)
	}
	all = here.all
	for _, p := range all {
		if t.known[p.processID] == nil {
			t.known[p.processID] = &followed{TreeProcess: snapshot.TreeProcess{PID: p.pid, Started: p.started}, first: now}
		}
	}
	t.largest, t.last = max(t.largest, len(all)), now
	return all
}

// listed are the processes of a look.
type listed struct {
	all  []process
	in   map[processID]bool
	pids map[int]bool
}

func newListed(all []process) *listed {
	l := &listed{in: make(map[processID]bool), pids: make(map[int]bool)}
	l.append(all)
	return l
}

func (l *listed) append(all []process) {
	for _, p := range all {
		if !l.in[p.processID] {
			l.in[p.processID], l.pids[p.pid] = true, true
			l.all = append(l.all, p)
		}
	}
}

// add lists a process whose parent has ended and those below it, unless it is there: to walk a tree takes long.
func (l *listed) add(pid int, below func(pid int) ([]process, int)) {
	if !l.pids[pid] {
		all, _ := below(pid)
		l.append(all)
	}
}

// points are the memory of the processes of a look, of those that have most.
func (t *tree) points(all []process, now time.Time, sums map[processID]sums, recorded func(pid int, started int64) bool, roles *roles) []*followed {
	if len(all) > mostProcesses {
		all = slices.SortedFunc(slices.Values(all), func(a, b process) int { return int(b.resident - a.resident) })[:mostProcesses]
	}
	var out []*followed
	for _, p := range all {
		f := t.known[p.processID]
		if p.state == 'Z' || !f.look(p) {
			continue // it has ended, or is hidden
		}
		st := f.status
		if exiting := st.anonymous+st.swapped == 0; exiting && len(f.Points) > 0 && f.Points[0].Anonymous+f.Points[0].Swapped > 0 {
			continue // it is exiting, and has given back all
		}
		f.Parent, f.agent = p.parent, st.innermost
		if f.asked.IsZero() || f.named != p.used && now.Sub(f.asked) >= min(now.Sub(f.first)/2, young) || f.name != p.name {
			f.asked, f.named, f.name = now, p.used, p.name
			f.Role = processes.Role(roles.of(t, f, p))
		}
		at := snapshot.ProcessPoint{
			Time: now, Recorded: recorded(p.pid, p.started) || recorded(f.agent, p.started),
			Anonymous: st.anonymous, File: st.file, Shared: st.shared, Swapped: st.swapped, PSS: snapshot.Unknown, OfOthers: snapshot.Unknown, Written: snapshot.Unknown,
		}
		if t.written {
			at.Written = writtenBy(p.pid)
		}
		if s, ok := sums[p.processID]; ok {
			at.PSS, at.OfOthers = s.pss, s.ofOthers
		}
		if f.Points == nil {
			f.begun = at.Anonymous + at.Swapped
		}
		f.Points = []snapshot.ProcessPoint{at}
		out = append(out, f)
	}
	return out
}

// look reads the memory of a process, unless it can be as it was: no page has come since, and none has gone. Most processes of a crowd
// wait. It is not ok of one that has ended, or is hidden.
func (f *followed) look(p process) (ok bool) {
	if f.status != (status{}) && p.pages == f.then.pages {
		return true
	}
	text, err := os.ReadFile(procFile(p.pid, "status"))
	if err != nil {
		return false
	}
	f.status, f.then = parseStatus(text), p.used
	if !f.status.split {
		f.status.anonymous = f.status.resident // its files, too, which level off; 0 of one that is exiting
	}
	return true
}

// crowd says that not all processes were recorded at each second; "" where they were.
func (t *tree) crowd() string {
	if t.largest <= mostProcesses {
		return ""
	}
	return fmt.Sprintf("there were up to %d processes at once; the memory of the %d largest was recorded", t.largest, mostProcesses)
}

func procFile(pid int, name string) string { return fmt.Sprintf("/proc/%d/%s", pid, name) }

// status is what /proc/PID/status tells.
type status struct {
	name                             string
	anonymous, file, shared, swapped snapshot.Bytes
	resident                         snapshot.Bytes
	split                            bool // the kernel divides resident memory so, as Linux does from 4.5 on
	innermost                        int  // the number that the process itself has for itself
}

func parseStatus(text []byte) (s status) {
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		kib := func() snapshot.Bytes {
			n, _ := strconv.ParseInt(strings.TrimSuffix(value, " kB"), 10, 64) // 0 where the kernel writes otherwise
			return snapshot.Bytes(n) << 10
		}
		switch key {
		case "Name":
			s.name = value
		case "NSpid":
			s.innermost, _ = strconv.Atoi(value[strings.LastIndexAny(value, "\t ")+1:]) // likewise
		case "VmRSS":
			s.resident = kib()
		case "RssAnon":
			s.anonymous, s.split = kib(), true
		case "RssFile":
			s.file = kib()
		case "RssShmem":
			s.shared = kib()
		case "VmSwap":
			s.swapped = kib()
		}
	}
	return s
}

// process is one of a tree, as /proc tells.
type process struct {
	processID
	parent  int
	group   int    // of processes, as a shell makes one for a job
	name    string // of the program
	state   byte
	threads int
	used
}

// used is what a process has taken so far. One of which it stays as it was waits.
type used struct {
	pages
	ticks int64 // of the processor's time
}

// pages have come into a process's memory, by faults, and are there.
type pages struct {
	resident snapshot.Bytes
	faults   int64
}

// processTree lists a process and all below it, and counts those that are there and that the system tells nothing of: another
// user's, where /proc is mounted with hidepid.
func processTree(root int) (tree []process, hidden int) {
	below := children
	if _, err := os.Stat(childrenFile(root, strconv.Itoa(root))); err != nil {
		below = allChildren() // of a kernel that does not list them by process
	}
	return walk(root, below, readStat)
}

func walk(root int, below func(process) []int, stat func(pid int) (process, bool)) (tree []process, hidden int) {
	unread := make(map[int][]int) // by the parent's place in the tree
	if p, ok := stat(root); ok {
		tree = append(tree, p)
	}
	for at := 0; at < len(tree); at++ {
		for _, child := range below(tree[at]) {
			if p, ok := stat(child); ok {
				tree = append(tree, p)
			} else {
				unread[at] = append(unread[at], child)
			}
		}
	}
	for parent, pids := range unread {
		still := below(tree[parent]) // what has ended is not there any more
		for _, pid := range pids {
			if _, ok := stat(pid); !ok && slices.Contains(still, pid) {
				hidden++
			}
		}
	}
	return tree, hidden
}

func childrenFile(pid int, thread string) string {
	return fmt.Sprintf("/proc/%d/task/%s/children", pid, thread)
}

// children are the processes that the threads of one have started.
func children(p process) (pids []int) {
	threads := []string{strconv.Itoa(p.pid)}
	if p.threads != 1 {
		threads = processNames(fmt.Sprintf("/proc/%d/task", p.pid)) // none once it has ended
	}
	for _, thread := range threads {
		text, _ := os.ReadFile(childrenFile(p.pid, thread)) // likewise
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// allChildren reads who started each process of the machine.
func allChildren() func(process) []int {
	entries, _ := os.ReadDir("/proc")
	of := make(map[int][]int)
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if p, ok := readStat(pid); ok {
				of[p.parent] = append(of[p.parent], pid)
			}
		}
	}
	return func(p process) []int { return of[p.pid] }
}

// readStat is not ok of a process that has ended.
func readStat(pid int) (process, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false
	}
	return parseStat(text)
}

// parseStat reads a line of /proc/PID/stat. The name, in parentheses, may hold
// anything.
func parseStat(text []byte) (p process, ok bool) {
	end := bytes.LastIndexByte(text, ')')
	begin := bytes.IndexByte(text, ' ')
	if begin < 0 || end < begin {
		return p, false
	}
	// After the name, which is the second field of all: state, parent, …
	fields := strings.Fields(string(text[end+1:]))
	if len(fields) < 22 {
		return p, false
	}
	var err error
	number := func(field string) int64 {
		n, wrong := strconv.ParseInt(field, 10, 64)
		err = cmp.Or(err, wrong)
		return n
	}
	// By their numbers of all: the parent is the 4th, faults the 10th and 12th, ticks the 14th and 15th, threads the 20th, the start
	// the 22nd, and resident pages the 24th.
	p = process{
		processID: processID{int(number(string(text[:begin]))), number(fields[19])}, parent: int(number(fields[1])), group: int(number(fields[2])),
		name: strings.TrimPrefix(string(text[begin+1:end]), "("), state: fields[0][0], threads: int(number(fields[17])),
		used: used{pages{snapshot.Bytes(number(fields[21]) * int64(os.Getpagesize())), number(fields[7]) + number(fields[9])}, number(fields[11]) + number(fields[12])},
	}
	return p, err == nil
}

// sums are figures of a process that the kernel adds up page by page; Unknown where it tells none.
type sums struct{ pss, ofOthers snapshot.Bytes }

func readSums(pid int) sums {
	of := map[string]snapshot.Bytes{"Pss:": snapshot.Unknown, "Anonymous:": snapshot.Unknown, "Pss_Anon:": snapshot.Unknown}
	text, _ := os.ReadFile(procFile(pid, "smaps_rollup")) // it has ended, or is another user's
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 {
			if kib, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				of[fields[0]] = snapshot.Bytes(kib) << 10
			}
		}
	}
	s := sums{of["Pss:"], snapshot.Unknown}
	if all, own := of["Anonymous:"], of["Pss_Anon:"]; own >= 0 && all >= own {
		s.ofOthers = all - own
	}
	return s
}
