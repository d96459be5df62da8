package record

import (
	"bytes"
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
}

func newTree(root int, agent string) *tree {
	return &tree{root: root, known: make(map[processID]*followed), orphans: orphans{agent: agent}}
}

// look lists the processes that there are, the root first.
func (t *tree) look(now time.Time) []process {
	all, hidden := processTree(t.root)
	t.hidden = max(t.hidden, hidden)
	here := newListed(all)
	for id := range t.known {
		if here.in[id] {
			continue
		}
		if p, ok := readStat(id.pid); !ok || p.processID != id || p.state == 'Z' {
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
	t.largest = max(t.largest, len(all))
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
		all = slices.SortedFunc(slices.Values(all), func(a, b process) int { return int(b.rss - a.rss) })[:mostProcesses]
	}
	var out []*followed
	for _, p := range all {
		text, err := os.ReadFile(procFile(p.pid, "status"))
		if err != nil || p.state == 'Z' {
			continue // it has ended, or is hidden
		}
		st := parseStatus(text)
		if !st.split {
			st.anonymous = st.resident // its files, too, which level off; 0 of one that is exiting
		}
		f := t.known[p.processID]
		if exiting := st.anonymous+st.swapped == 0; exiting && len(f.Points) > 0 && f.Points[0].Anonymous+f.Points[0].Swapped > 0 {
			continue // it is exiting, and has given back all
		}
		f.Parent, f.agent = p.parent, st.innermost
		if f.asked.IsZero() || now.Sub(f.asked) >= min(now.Sub(f.first)/2, young) || f.name != p.name {
			f.asked, f.name = now, p.name
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
	parent int
	name   string // of the program
	state  byte
	rss    snapshot.Bytes
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

func walk(root int, below func(pid int) []int, stat func(pid int) (process, bool)) (tree []process, hidden int) {
	unread := make(map[int][]int) // by parent
	for pids := []int{root}; len(pids) > 0; pids = pids[1:] {
		p, ok := stat(pids[0])
		if !ok {
			continue
		}
		tree = append(tree, p)
		for _, child := range below(p.pid) {
			if _, ok := stat(child); ok {
				pids = append(pids, child)
			} else {
				unread[p.pid] = append(unread[p.pid], child)
			}
		}
	}
	for parent, pids := range unread {
		still := below(parent) // what has ended is not there any more
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
func children(pid int) (pids []int) {
	threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid)) // none once it has ended
	for _, t := range threads {
		text, _ := os.ReadFile(childrenFile(pid, t.Name())) // likewise
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// allChildren reads who started each process of the machine.
func allChildren() func(int) []int {
	entries, _ := os.ReadDir("/proc")
	of := make(map[int][]int)
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if p, ok := readStat(pid); ok {
				of[p.parent] = append(of[p.parent], pid)
			}
		}
	}
	return func(pid int) []int { return of[pid] }
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
	// After the name: state, parent, …; the start is the 22nd field of all, and resident pages the 24th.
	fields := strings.Fields(string(text[end+1:]))
	if len(fields) < 22 {
		return p, false
	}
	pid, err1 := strconv.Atoi(string(text[:begin]))
	parent, err2 := strconv.Atoi(fields[1])
	started, err3 := strconv.ParseInt(fields[19], 10, 64)
	pages, err4 := strconv.ParseInt(fields[21], 10, 64)
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil {
		return p, false
	}
	name := strings.TrimPrefix(string(text[begin+1:end]), "(")
	return process{processID{pid, started}, parent, name, fields[0][0], snapshot.Bytes(pages * int64(os.Getpagesize()))}, true
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
