package record

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/native"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// HostName is the file of a run, or of a rank of it, that holds the host's figures of the
// whole process tree: comma-separated, a line a moment.
func HostName(rank int) string {
	if rank == snapshot.NoRank {
		return "host.csv"
	}
	return "host" + rundir.RankSuffix(rank) + ".csv"
}

const (
	hostEvery = time.Second
	// pssEvery is the same for PSS, which the kernel adds up page by page.
	pssEvery = 10 * time.Second
	// hostSnapshotEvery is the time between the first snapshots of a process that no
	// agent looks into.
	hostSnapshotEvery = 250 * time.Millisecond
)

// host samples a process tree until it is stopped: its totals into a file, and,
// as long as no agent records, snapshots.
type host struct {
	root      int
	dir       string
	rank      int
	snapshots *clock // nil where none are wanted
	began     time.Time
	lines     time.Time
	pss       time.Time

	cancel context.CancelFunc
	done   sync.WaitGroup
	failed error
}

// watchHost begins to sample the tree below a process. The snapshots' clock is nil
// where there are none to be.
func watchHost(ctx context.Context, pid int, out *rundir.Writer, snapshots *clock) *host {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	h := &host{root: pid, dir: out.Dir(), rank: out.Rank(), snapshots: snapshots, began: time.Now(), cancel: cancel}
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		return h
	}
	h.done.Go(func() { h.failed = h.sample(ctx) })
	return h
}

// stop returns notes on what was not sampled.
func (h *host) stop() []string {
	h.cancel()
	h.done.Wait()
	h.giveWay()
	if h.failed != nil {
		return []string{fmt.Sprintf("the host's figures were recorded in part: %v", h.failed)}
	}
	return nil
}

func (h *host) sample(ctx context.Context) (err error) {
	f, err := os.OpenFile(filepath.Join(h.dir, HostName(h.rank)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	if _, err := f.WriteString("time_us,processes,rss_bytes,pss_bytes\n"); err != nil {
		return err
	}
	for {
		// Since it is told from when we began, no one who sets the clock puts it back.
		now := h.began.Add(time.Since(h.began))
		if err := h.look(now, f); err != nil {
			h.makeRoom(ctx)
			return err
		}
		next := h.lines
		if h.snapshots != nil && h.snapshots.due.Before(next) {
			next = h.snapshots.due
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(next)):
		}
	}
}

// makeRoom is for a full disk: what an agent records tells more, once there is one.
func (h *host) makeRoom(ctx context.Context) {
	if h.snapshots != nil {
		h.snapshots.yield()
	}
	for {
		h.giveWay()
		select {
		case <-ctx.Done():
			return
		case <-time.After(hostSnapshotEvery):
		}
	}
}

// giveWay takes the snapshots back once an agent takes its own, which tell more.
func (h *host) giveWay() {
	if h.snapshots == nil {
		return
	}
	if len(namesBeginning(h.dir, claimPrefix)) > 0 {
		h.snapshots.drop()
		h.snapshots = nil
	}
}

// look does what is due.
func (h *host) look(now time.Time, f io.Writer) error {
	tree := processTree(h.root)
	h.giveWay()
	if h.snapshots != nil && h.snapshots.isDue(now) {
		if s := hostSnapshot(tree, now); s != nil {
			s.Rank = h.rank
			if err := h.snapshots.take(now, native.Ending, func(w io.Writer) error { return native.Encode(w, s) }); err != nil {
				return err
			}
		}
	}
	if now.Before(h.lines) {
		return nil
	}
	h.lines = now.Add(hostEvery)
	var rss snapshot.Bytes
	for _, p := range tree {
		rss += p.rss
	}
	pss := "" // unknown
	if !now.Before(h.pss) {
		h.pss = now.Add(pssEvery)
		if sum, ok := sumPSS(tree); ok {
			pss = strconv.FormatInt(int64(sum), 10)
		}
	}
	_, err := fmt.Fprintf(f, "%d,%d,%d,%s\n", now.UnixMicro(), len(tree), rss, pss)
	return err
}

// hostSnapshot is what processes hold of their own, by program: a row for all
// memory of a kind, with its pages as blocks. Nil where they have ended.
func hostSnapshot(tree []process, now time.Time) *snapshot.Snapshot {
	stacks := snapshot.NewStacks()
	s := &snapshot.Snapshot{
		Mark: snapshot.Mark{Step: snapshot.NoStep, Epoch: snapshot.NoStep, Time: now.UTC().Truncate(time.Microsecond)},
		Rank: snapshot.NoRank, Producer: "memdiag record", Stacks: stacks,
		Notes: []string{"no agent looks into this process: its memory is known by kind, not by what allocated it"},
	}
	type site struct{ program, kind string }
	held := make(map[site]snapshot.Bytes)
	var rss snapshot.Bytes
	for _, p := range tree {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
		if err != nil {
			continue // it has ended
		}
		st := parseStatus(text)
		rss += p.rss
		held[site{st.name, "heap and other private memory"}] += st.anonymous
		held[site{st.name, "shared memory"}] += st.shared
	}
	if len(held) == 0 || rss == 0 {
		return nil
	}
	var total snapshot.Bytes
	sites := slices.SortedFunc(maps.Keys(held), func(a, b site) int {
		return cmp.Or(strings.Compare(a.program, b.program), strings.Compare(a.kind, b.kind))
	})
	b := &s.Blocks
	for _, at := range sites {
		size := held[at]
		if size == 0 {
			continue
		}
		total += size
		b.Segment, b.Address = append(b.Segment, 0), append(b.Address, 0)
		b.Size, b.Requested = append(b.Size, size), append(b.Requested, size)
		b.State = append(b.State, snapshot.Live)
		b.Stack = append(b.Stack, stacks.InternFrames([]snapshot.Frame{{Function: at.kind + " of " + at.program}}))
		b.Count = append(b.Count, max(1, int64(size)/int64(os.Getpagesize())))
	}
	s.Segments = []snapshot.Segment{{Size: total, NumBlocks: b.Len()}}
	limit := snapshot.Unknown
	if left := room("/proc", "/sys/fs/cgroup", tree[0].pid); left >= 0 {
		limit = rss + left
	}
	s.Devices = []snapshot.Device{{
		Kind: snapshot.Process, Name: "processes", Limit: limit,
		Meters: snapshot.Meters{Requested: total, Allocated: total, Active: total, Reserved: total, Driver: rss},
	}}
	return s
}

// status is what /proc/PID/status tells.
type status struct {
	name              string
	anonymous, shared snapshot.Bytes
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
		case "RssAnon":
			s.anonymous = kib()
		case "RssShmem":
			s.shared = kib()
		}
	}
	return s
}

// process is one of a tree, as /proc tells.
type process struct {
	pid, parent int
	rss         snapshot.Bytes
}

// processTree lists a process and all below it.
func processTree(root int) (tree []process) {
	below := children
	if _, err := os.Stat(childrenFile(root, strconv.Itoa(root))); err != nil {
		below = allChildren() // of a kernel that does not list them by process
	}
	for pids := []int{root}; len(pids) > 0; pids = pids[1:] {
		if p, ok := readStat(pids[0]); ok {
			tree = append(tree, p)
			pids = append(pids, below(p.pid)...)
		}
	}
	return tree
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

// outlive lists the processes that have the agent's folder in their environment: those
// that the command has started and left behind.
func outlive(agent string) (pids []int) {
	environments, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is right
	for _, path := range environments {
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte(pathVariable+"="+agent)) {
			continue // it has ended, or is another user's
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// outliving is outlive, but for those that end behind the command by themselves, as
// multiprocessing's helpers do.
func outliving(agent string) (pids []int) {
	for range 20 {
		if pids = outlive(agent); len(pids) == 0 {
			return nil
		}
		time.Sleep(25 * time.Millisecond)
	}
	return pids
}

// parseStat reads a line of /proc/PID/stat. The name, in parentheses, may hold
// anything.
func parseStat(text []byte) (p process, ok bool) {
	end := bytes.LastIndexByte(text, ')')
	begin := bytes.IndexByte(text, ' ')
	if begin < 0 || end < begin {
		return p, false
	}
	// After the name: state, parent, …; resident pages are the 24th field of all.
	fields := strings.Fields(string(text[end+1:]))
	if len(fields) < 22 {
		return p, false
	}
	pid, err1 := strconv.Atoi(string(text[:begin]))
	parent, err2 := strconv.Atoi(fields[1])
	pages, err3 := strconv.ParseInt(fields[21], 10, 64)
	if err1 != nil || err2 != nil || err3 != nil {
		return p, false
	}
	return process{pid, parent, snapshot.Bytes(pages * int64(os.Getpagesize()))}, true
}

// sumPSS adds up the proportional set sizes; not ok where the kernel tells none.
func sumPSS(tree []process) (sum snapshot.Bytes, ok bool) {
	for _, p := range tree {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.pid))
		if err != nil {
			continue
		}
		lines := bufio.NewScanner(bytes.NewReader(text))
		for lines.Scan() {
			fields := strings.Fields(lines.Text())
			if len(fields) == 3 && fields[0] == "Pss:" {
				if kib, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
					sum += snapshot.Bytes(kib) << 10
					ok = true
				}
			}
		}
	}
	return sum, ok
}
