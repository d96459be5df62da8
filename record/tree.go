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
)

const (
	// mostProcesses is how many processes' memory is recorded in a look: the largest ones.
	mostProcesses = 512
	// mostPoints is how many lines are written before the time between them doubles.
	mostPoints = 20_000
	// young is how long a process is likely to change its program or its name. Its role is found again when the process is twice as old
	// as at the last time, later every 10 seconds.
	young = 10 * time.Second
)

// tree follows the processes of a command. A process stays in it when its parent ends.
type tree struct {
	root    int
	known   map[processID]*followed
	orphans orphans
	written bool // whether to read how much the processes have written
	python  bool // whether a process was seen to run Python
	// brief are the parents of processes that were seen in one look only.
	brief map[int]bool
	last  time.Time // when the last look was
	// largest is the largest number of processes in a look, and hidden the largest number that the system did not show.
	largest, hidden int
}

// processID distinguishes a process from others with the same PID.
type processID struct {
	pid     int
	started int64
}

// followed is a process that has been seen.
type followed struct {
	snapshot.TreeProcess
	first  time.Time
	begun  snapshot.Bytes // private memory at its first look
	name   string         // the program's name, from the kernel, when its role was found
	asked  time.Time      // when its role was found
	rank   string         // from its environment or its agent
	writer bool           // whether it has had a checkpoint open for writing
	agent  int            // its PID in its own namespace, in a container
	status status         // at the last look
	then   used           // pages and processor time at the last look
	named  used           // the same when its role was found
}

func newTree(root int, agent string) *tree {
	command, _ := readStat(root) // if this fails, orphans are not found by their group
	return &tree{root: root, known: make(map[processID]*followed), brief: make(map[int]bool), orphans: orphans{agent: agent, root: command}}
}

// isPython reports whether a program of this name is a Python interpreter.
func isPython(name string) bool { return strings.HasPrefix(name, "python") }

// look lists the current processes, the root first.
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
		t.python = t.python || isPython(p.name)
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

// add lists a process whose parent has ended and its descendants, unless it is listed: walking a tree takes long.
func (l *listed) add(pid int, below func(pid int) ([]process, int)) {
	if !l.pids[pid] {
		all, _ := below(pid)
		l.append(all)
	}
}

// points returns the memory of the processes of a look, at most of the mostProcesses largest.
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
			continue // it is exiting, and has freed all its memory
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

// look reads the memory of a process. It skips that if the process has had no page fault and its resident size is the same, as for most
// of a crowd, which waits. ok is false if the process has ended or is hidden.
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
		f.status.anonymous = f.status.resident // this includes its files, which level off; 0 if it is exiting
	}
	return true
}

// crowd is a note that only the largest processes were recorded; "" if all were.
func (t *tree) crowd() string {
	if t.largest <= mostProcesses {
		return ""
	}
	return fmt.Sprintf("there were up to %d processes at once; the memory of the %d largest was recorded", t.largest, mostProcesses)
}

func procFile(pid int, name string) string { return fmt.Sprintf("/proc/%d/%s", pid, name) }

// status is the content of /proc/PID/status.
type status struct {
	name                             string
	anonymous, file, shared, swapped snapshot.Bytes
	resident                         snapshot.Bytes
	split                            bool // whether the kernel splits resident memory by kind, as Linux does since 4.5
	innermost                        int  // the PID that the process has for itself
}

func parseStatus(text []byte) (s status) {
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		kib := func() snapshot.Bytes {
			n, _ := strconv.ParseInt(strings.TrimSuffix(value, " kB"), 10, 64) // 0 if the format differs
			return snapshot.Bytes(n) << 10
		}
		switch key {
		case "Name":
			s.name = value
		case "NSpid":
			s.innermost, _ = strconv.Atoi(value[strings.LastIndexAny(value, "\t ")+1:]) // 0 if the format differs
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

// process is a process of a tree, from /proc/PID/stat.
type process struct {
	processID
	parent  int
	group   int    // the process group, as a shell makes one for each job
	name    string // of the program
	state   byte
	threads int
	used
}

// used is what a process has used so far. If it does not change, the process waits.
type used struct {
	pages
	ticks int64 // processor time
}

// pages are the resident memory of a process, and its page faults so far.
type pages struct {
	resident snapshot.Bytes
	faults   int64
}

// processTree lists a process and its descendants. hidden counts descendants that exist but cannot be read: another user's, if /proc is
// mounted with hidepid.
func processTree(root int) (tree []process, hidden int) {
	below := children
	if _, err := os.Stat(childrenFile(root, strconv.Itoa(root))); err != nil {
		below = allChildren() // this kernel does not list children by process
	}
	return walk(root, below, readStat)
}

func walk(root int, below func(process) []int, stat func(pid int) (process, bool)) (tree []process, hidden int) {
	unread := make(map[int][]int) // children that could not be read, by the parent's place in the tree
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
		still := below(tree[parent]) // a child that has ended is no longer listed
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

// children lists the processes that the threads of a process have started.
func children(p process) (pids []int) {
	threads := []string{strconv.Itoa(p.pid)}
	if p.threads != 1 {
		threads = processNames(fmt.Sprintf("/proc/%d/task", p.pid)) // none once it has ended
	}
	for _, thread := range threads {
		text, _ := os.ReadFile(childrenFile(p.pid, thread)) // empty if it has ended
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// allChildren finds the children of every process on the machine by their parents.
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

// readStat reads /proc/PID/stat. It reports false if the process has ended.
func readStat(pid int) (process, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false
	}
	return parseStat(text)
}

// parseStat parses a line of /proc/PID/stat. The name, in parentheses, may contain any character.
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
	// Field numbers in proc(5): parent 4, group 5, faults 10 and 12, ticks 14 and 15, threads 20, start 22, resident pages 24.
	p = process{
		processID: processID{int(number(string(text[:begin]))), number(fields[19])}, parent: int(number(fields[1])), group: int(number(fields[2])),
		name: strings.TrimPrefix(string(text[begin+1:end]), "("), state: fields[0][0], threads: int(number(fields[17])),
		used: used{pages{snapshot.Bytes(number(fields[21]) * int64(os.Getpagesize())), number(fields[7]) + number(fields[9])}, number(fields[11]) + number(fields[12])},
	}
	return p, err == nil
}

// sums are figures that the kernel adds up page by page; Unknown if it does not report them.
type sums struct{ pss, ofOthers snapshot.Bytes }

func readSums(pid int) sums {
	of := map[string]snapshot.Bytes{"Pss:": snapshot.Unknown, "Anonymous:": snapshot.Unknown, "Pss_Anon:": snapshot.Unknown}
	text, _ := os.ReadFile(procFile(pid, "smaps_rollup")) // empty if it has ended or belongs to another user
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
