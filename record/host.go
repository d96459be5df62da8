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

// HostName is the file of a run, or of a rank of it, that holds the host's figures of the
// whole process tree: comma-separated, a line a moment.
func HostName(rank int) string {
	if rank == snapshot.NoRank {
		return "host.csv"
	}
	return "host" + rundir.RankSuffix(rank) + ".csv"
}

const (
	// hostEvery is the time between looks, once there were so many that a shorter one, of which
	// the first are, makes no difference.
	hostEvery, hostFirst, hostFirstLooks = time.Second, 250 * time.Millisecond, 32
	// sumsFirst and sumsEvery are the same for what the kernel adds up page by page: often at first and once a process has
	// begun, since a fork shares most then.
	sumsFirst, sumsEvery = time.Second, 10 * time.Second
	// hostShare is the part of the time that looks may take, of one processor, and sumsShare that of what the kernel adds up beside
	// them. hostAllowance is what looks may take at once, as the first ones do, once there was time enough for it. Of fewer processes
	// than many a look is never longer in coming than twice its time.
	hostShare, sumsShare, hostAllowance, many = 0.008, 0.002, time.Second, 64
	// hostSnapshotEvery is the time between the first snapshots of a process that no
	// agent looks into.
	hostSnapshotEvery = 250 * time.Millisecond
)

// procFolder and groupsFolder are where the kernel tells of processes and of their control groups.
const procFolder, groupsFolder = "/proc", "/sys/fs/cgroup"

// host samples a process tree until it is stopped: its totals and the memory of each process
// into files, and, as long as no agent records, snapshots.
type host struct {
	tree      *tree
	roles     *roles
	dir       string
	rank      int
	profiled  bool   // the command itself is recorded by its profiles
	snapshots *clock // nil where none are wanted
	began     time.Time
	lines     time.Time     // when the next are due
	rest      time.Time     // until when there are no looks, or they would take too much
	credit    time.Duration // that looks may take now
	paid      time.Time     // when the last one was
	sumsDue   time.Time
	sumsRead  time.Time     // when their reading began last
	sumsRest  time.Time     // until when they may not be read, or their cost would be too much
	sums      chan pageSums // while they are read
	every     time.Duration // the least time between lines, which doubles with their number
	points    int
	claims    claimList
	deaths    deaths
	shared    sharedFiles
	slow      time.Duration // the longest time between lines that looks made necessary

	cancel context.CancelFunc
	done   sync.WaitGroup
	failed error
}

// watchHost begins to sample the tree below a process. The snapshots' clock is nil
// where there are none to be.
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

// hidesProcesses reports whether this system would tell of processes, in /proc, and does not.
func hidesProcesses() bool {
	_, ok := readStat(os.Getpid())
	return runtime.GOOS == "linux" && !ok
}

// stop returns notes on what was not sampled.
func (h *host) stop() (notes []string) {
	h.cancel()
	h.done.Wait()
	h.claims.due = time.Time{} // no later listing finds a claim
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
	all, err := h.create(HostName(h.rank), processes.HostHeader)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, all.Close()) }()
	each, err := h.create(ProcessesName(h.rank), processes.Header)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, each.Close()) }()
	for {
		// Since it is counted from when we began, no one who sets the clock puts it back.
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

// create makes a file of the run that begins with a header.
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

// giveWay takes the snapshots back once an agent takes its own, which tell more. Those of a process beside the run's own are none of
// the run: where only a child can be recorded, the others are known by these.
func (h *host) giveWay() {
	if h.snapshots == nil {
		return
	}
	if h.claims.look(h.dir); h.claims.any {
		h.snapshots.drop()
		h.snapshots = nil
	}
}

// look does what is due.
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

// pageSums are those of processes, and how long they took to read.
type pageSums struct {
	of   map[processID]sums
	took time.Duration
}

// sumsOfPages are those that were read since the last look; nil for none. They are read beside the looks: of a process that is
// busy with its memory the kernel may take seconds.
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

// pay takes what a look took of the processor's time from the credit. There is none while that is overdrawn.
func (h *host) pay(now time.Time, took time.Duration) {
	h.credit = min(h.credit+time.Duration(float64(now.Sub(h.paid))*hostShare), hostAllowance) - took
	h.paid = now
	due := time.Duration(float64(max(0, -h.credit)) / hostShare)
	if h.tree.largest < many {
		due = min(due, 2*hostEvery)
	}
	h.rest, h.slow = now.Add(due), max(h.slow, due)
}

// pace is when the next lines are due: they do not become too many.
func (h *host) pace(now time.Time, points int) {
	if h.points += points; h.points > mostPoints {
		h.points, h.every = 0, max(2*h.every, 2*hostEvery)
	}
	h.lines = now.Add(max(h.every, min(now.Sub(h.began)/hostFirstLooks, hostEvery)))
}

// whole is the tree as a whole.
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
		return !ok || p.parent == os.Getpid() // it has ended, or is a helper of ours
	})
	found := h.shared.count(tree)
	at.Segments, at.SegmentBytes, at.Folder = found.n, found.size, found.folder()
	h.tree.written = at.Folder != ""
	return at
}

// hostSnapshot is what processes hold of their own, by program: a row for all
// memory of a kind, with its pages as blocks. Nil where they have ended.
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
