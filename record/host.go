package record

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/native"
	"github.com/memdiag/memdiag/snapshot/processes"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

const (
	// hostFirst is the least time between lines of the host's figures. The time grows with the run's age, of which it is a 32nd
	// (hostFirstLooks), up to hostEvery.
	hostEvery, hostFirst, hostFirstLooks = time.Second, 250 * time.Millisecond, 32
	// sumsFirst and sumsEvery are the same for the figures that the kernel adds up page by page. They are read often at first, and when
	// a process has begun: a fork shares most of its memory then.
	sumsFirst, sumsEvery = time.Second, 10 * time.Second
	// hostShare is the share of one processor that looks may take; sumsShare is the share for the figures that the kernel adds up.
	// hostAllowance is how much time looks may take in advance, as the first ones do. With fewer processes than many, the cost of looks
	// delays the next by at most twice hostEvery.
	hostShare, sumsShare, hostAllowance, many = 0.008, 0.002, time.Second, 64
	// hostSnapshotEvery is the time between the first snapshots of a process without an agent.
	hostSnapshotEvery = 250 * time.Millisecond
)

// procFolder and groupsFolder are where Linux lists processes and control groups.
const procFolder, groupsFolder = "/proc", "/sys/fs/cgroup"

// host samples a process tree until it is stopped. It writes the totals and the memory of each process into files, and snapshots until
// an agent records.
type host struct {
	tree      *tree
	roles     *roles
	dir       string
	rank      int
	profiled  bool   // whether the command is recorded through its profiles
	snapshots *clock // nil if no snapshots are wanted
	began     time.Time
	lines     time.Time     // when the next lines are due
	rest      time.Time     // no looks before this time, to limit their cost
	credit    time.Duration // time that looks may take now
	paid      time.Time     // when credit was last updated
	sumsDue   time.Time
	sumsRead  time.Time     // when the last reading of the sums began
	sumsRest  time.Time     // no sums before this time, to limit their cost
	sums      chan pageSums // result of the reading in progress; nil for none
	every     time.Duration // least time between lines; doubles as lines accumulate
	points    int
	claims    claimList
	deaths    deaths
	shared    sharedFiles
	slow      time.Duration // the longest delay that the cost of looks has caused

	cancel context.CancelFunc
	done   sync.WaitGroup
	failed error
}

// watchHost begins to sample the tree below a process. snapshots is nil if no snapshots are wanted.
func watchHost(ctx context.Context, pid int, agent string, out *rundir.Writer, snapshots *clock) *host {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	dir, err := filepath.Abs(out.Dir())
	if err != nil {
		dir = out.Dir()
	}
	h := &host{
		tree: newTree(pid, agent), roles: &roles{filepath.Join(dir, reportPrefix(out.Rank()))}, dir: dir, rank: out.Rank(),
		profiled: snapshots == nil, snapshots: snapshots, began: time.Now(), every: hostFirst, credit: hostAllowance, cancel: cancel,
	}
	h.paid = h.began
	h.shared = watchShared("/dev/shm", h.began)
	h.deaths.look(procFolder, groupsFolder, os.Getpid())
	if _, ok := readStat(pid); !ok {
		return h
	}
	h.done.Go(func() { h.failed = h.sample(ctx) })
	return h
}

// hidesProcesses reports whether this system has /proc but hides processes in it.
func hidesProcesses() bool {
	_, ok := readStat(os.Getpid())
	return runtime.GOOS == "linux" && !ok
}

// stop ends the sampling and returns notes on what was not sampled.
func (h *host) stop() (notes []string) {
	h.cancel()
	h.done.Wait()
	h.claims.due = time.Time{} // list now: this is the last chance to find a claim
	h.giveWay()
	if h.failed != nil && h.deaths.before == nil {
		notes = append(notes, fmt.Sprintf("the host's figures are incomplete: %v", h.failed))
	}
	if h.slow > 2*hostEvery {
		notes = append(notes, fmt.Sprintf("there were up to %d processes; their memory was read up to %s apart", h.tree.largest, h.slow.Round(time.Second)))
	}
	if text := h.tree.crowd(); text != "" {
		notes = append(notes, text)
	}
	return notes
}

func (h *host) sample(ctx context.Context) (err error) {
	all, err := h.create(rundir.TableName("host", h.rank), processes.HostHeader)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, all.Close()) }()
	each, err := h.create(rundir.TableName("processes", h.rank), processes.Header)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, each.Close()) }()
	for {
		// Counted from the start, so that a change of the system clock has no effect.
		now := h.began.Add(time.Since(h.began))
		if err := h.look(ctx, now, all, each); err != nil {
			h.makeRoom(ctx)
			return err
		}
		next := h.lines
		if h.snapshots != nil && h.snapshots.due.Before(next) {
			next = h.snapshots.due
		}
		if next.Before(h.rest) {
			next = h.rest
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(next)):
		}
	}
}

// create creates a file of the run and writes its header.
func (h *host) create(name, header string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(h.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err := f.WriteString(header); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// makeRoom frees space on a full disk. Once an agent records, the host's snapshots are removed: the agent's contain more.
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

// giveWay removes the host's snapshots once an agent takes its own, which contain more. Claims of child processes do not count: if only
// a child can be recorded, the host's snapshots are all there is of the other processes.
func (h *host) giveWay() {
	if h.snapshots == nil {
		return
	}
	if h.claims.look(h.dir); h.claims.any {
		h.snapshots.drop()
		h.snapshots = nil
	}
}

// look does all that is due.
func (h *host) look(ctx context.Context, now time.Time, all, each io.Writer) error {
	begun := processorTime()
	defer func() { h.pay(now, processorTime()-begun) }()
	tree := h.tree.look(now)
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
	h.claims.look(h.dir)
	recorded := func(pid int, started int64) bool {
		_, claimed := h.claims.claims.of(pid, started)
		return claimed || h.profiled && pid == h.tree.root
	}
	points := h.tree.points(tree, now, h.sumsOfPages(tree, now), recorded, h.roles)
	h.tree.ripen(ctx, points, now)
	var text bytes.Buffer
	for _, p := range points {
		if err := processes.WritePoint(&text, &p.TreeProcess, &p.Points[0]); err != nil {
			return err
		}
	}
	if _, err := each.Write(text.Bytes()); err != nil {
		return err
	}
	whole := h.whole(tree, points, now)
	h.deaths.see(now, killsIn(h.deaths.group), points)
	err := processes.WriteHost(all, whole)
	h.pace(now, len(points))
	return err
}

// pageSums are the sums of the processes, and the time that reading them took.
type pageSums struct {
	of   map[processID]sums
	took time.Duration
}

// sumsOfPages returns the sums that were read since the last look; nil for none. A goroutine reads them, since the kernel may take
// seconds for a process that is busy with its memory.
func (h *host) sumsOfPages(tree []process, now time.Time) map[processID]sums {
	if h.sums != nil {
		select {
		case read := <-h.sums:
			h.sums = nil
			h.sumsRest = now.Add(max(sumsFirst, time.Duration(float64(read.took)/sumsShare)))
			h.sumsDue = now.Add(min(max(now.Sub(h.began), sumsFirst), sumsEvery))
			return read.of
		default:
			return nil
		}
	}
	begun := slices.ContainsFunc(tree, func(p process) bool { return h.tree.known[p.processID].first.After(h.sumsRead) })
	if now.Before(h.sumsRest) || now.Before(h.sumsDue) && !begun {
		return nil
	}
	h.sumsRead = now
	h.sums = make(chan pageSums, 1)
	go func(to chan<- pageSums) {
		begun, of := time.Now(), make(map[processID]sums)
		for _, p := range tree[:min(len(tree), mostProcesses)] {
			of[p.processID] = readSums(p.pid)
		}
		to <- pageSums{of, time.Since(begun)}
	}(h.sums)
	return nil
}

// pay subtracts the processor time of a look from the credit. If the credit is negative, there are no looks until it has recovered.
func (h *host) pay(now time.Time, took time.Duration) {
	h.credit = min(h.credit+time.Duration(float64(now.Sub(h.paid))*hostShare), hostAllowance) - took
	h.paid = now
	due := time.Duration(float64(max(0, -h.credit)) / hostShare)
	if h.tree.largest < many {
		due = min(due, 2*hostEvery)
	}
	h.rest, h.slow = now.Add(due), max(h.slow, due)
}

// pace sets when the next lines are due, so that there are not too many.
func (h *host) pace(now time.Time, points int) {
	if h.points += points; h.points > mostPoints {
		h.points, h.every = 0, max(2*h.every, 2*hostEvery)
	}
	h.lines = now.Add(max(h.every, min(now.Sub(h.began)/hostFirstLooks, hostEvery)))
}

// whole returns the figures of the whole tree.
func (h *host) whole(tree []process, points []*followed, now time.Time) *snapshot.HostPoint {
	at := &snapshot.HostPoint{Time: now, Processes: len(tree), PSS: snapshot.Unknown}
	for _, p := range tree {
		at.RSS += p.resident
	}
	for _, p := range points {
		if pss := p.Points[0].PSS; pss >= 0 {
			at.PSS = max(0, at.PSS) + pss
		}
	}
	in := map[int]bool{os.Getpid(): true}
	for _, p := range tree {
		in[p.pid] = true
	}
	h.deaths.look(procFolder, groupsFolder, h.tree.root)
	at.Group = group(procFolder, groupsFolder, h.tree.root, func(pid int) bool {
		if in[pid] {
			return true
		}
		p, ok := readStat(pid)
		return !ok || p.parent == os.Getpid() // it has ended, or memdiag started it
	})
	found := h.shared.count(tree)
	at.Segments, at.SegmentBytes, at.Folder = found.n, found.size, found.folder()
	h.tree.written = at.Folder != ""
	return at
}

// hostSnapshot lists the memory of the processes by program: one row per kind of memory, with its pages as blocks. It is nil if the
// processes have ended.
func hostSnapshot(tree []process, now time.Time) *snapshot.Snapshot {
	stacks := snapshot.NewStacks()
	s := &snapshot.Snapshot{
		Mark: snapshot.Mark{Step: snapshot.NoStep, Epoch: snapshot.NoStep, Time: now.UTC().Truncate(time.Microsecond)},
		Rank: snapshot.NoRank, Producer: "memdiag record", Stacks: stacks,
		Notes: []string{"no agent runs in this process: its memory is known by kind, not by call site"},
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
		rss += p.resident
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
	if left := room(procFolder, groupsFolder, tree[0].pid); left >= 0 {
		limit = rss + left
	}
	s.Devices = []snapshot.Device{{
		Kind: snapshot.Process, Name: snapshot.WatchedProcesses, Limit: limit,
		Meters: snapshot.Meters{Requested: total, Allocated: total, Active: total, Reserved: total, Driver: rss},
	}}
	return s
}

// outliving waits up to half a second for processes that end by themselves after the command, such as multiprocessing's helpers. It
// returns those that remain.
func outliving(agent string) (pids []int) {
	for range 20 {
		if pids = outlive(agent); len(pids) == 0 {
			return nil
		}
		time.Sleep(25 * time.Millisecond)
	}
	return pids
}
