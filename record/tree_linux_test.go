package record

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// TestTheTreeIsWhatTheKernelListsAndWhatParentsTell compares the kernel's list of children with the parents of all processes.
func TestTheTreeIsWhatTheKernelListsAndWhatParentsTell(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(childrenFile(os.Getpid(), strconv.Itoa(os.Getpid()))); err != nil {
		t.Skip("the kernel lists no children")
	}
	command := exec.Command("sh", "-c", "sleep 60 & (sleep 60; true) & wait")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	root := command.Process.Pid
	defer func() {
		all, _ := processTree(root)
		for _, p := range slices.Backward(all) {
			if q, err := os.FindProcess(p.pid); err == nil {
				_ = q.Kill()
			}
		}
		_ = command.Wait()
	}()
	const all = 4 // the two shells, and two that sleep
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if tree, _ := processTree(root); len(tree) >= all {
			break
		}
	}
	tree, hidden := processTree(root)
	below := allChildren()
	if len(tree) != all || tree[0].pid != root || hidden != 0 {
		t.Fatalf("%+v below %d, and %d hidden; want %d", tree, root, hidden, all)
	}
	for _, p := range tree {
		listed, told := children(p), below(p)
		slices.Sort(listed)
		slices.Sort(told)
		if !slices.Equal(listed, told) {
			t.Errorf("process %d: the kernel lists %v, and %v name it as their parent", p.pid, listed, told)
		}
	}
}

// TestAProcessThatTheSystemHidesIsCounted has one of two children that let nobody read them end while it is looked for.
func TestAProcessThatTheSystemHidesIsCounted(t *testing.T) {
	t.Parallel()
	looks := 0
	below := func(p process) []int {
		if looks++; p.pid != 1 {
			return nil
		}
		return [][]int{{2, 3, 4}, {2, 3}}[min(1, looks/2)]
	}
	stat := func(pid int) (process, bool) { return process{processID: processID{pid: pid}}, pid < 3 }
	if tree, hidden := walk(1, below, stat); len(tree) != 2 || hidden != 1 {
		t.Errorf("%+v, and %d hidden; want two, and the one that stays", tree, hidden)
	}
}

// TestAKernelThatDividesNoResidentMemoryIsNoFlatLine: the whole of it counts.
func TestAKernelThatDividesNoResidentMemoryIsNoFlatLine(t *testing.T) {
	t.Parallel()
	if s := parseStatus([]byte("Name:\tpython\nVmRSS:\t 100 kB\n")); s.split {
		t.Errorf("%+v", s)
	}
	if s := parseStatus([]byte("Name:\tpython\nRssAnon:\t 0 kB\n")); !s.split || s.anonymous != 0 {
		t.Errorf("%+v", s)
	}
}

// TestAProcessThatOutlivesItsParentStaysInTheTree has the middle one of three end.
func TestAProcessThatOutlivesItsParentStaysInTheTree(t *testing.T) {
	t.Parallel()
	go_, wait, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command("sh", "-c", "sh -c 'sleep 61 & read x' ; sleep 60")
	command.Stdin = go_
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	tree := newTree(command.Process.Pid, "")
	named := func(name string) (found []process) {
		for _, p := range tree.look(time.Now()) {
			if line, err := os.ReadFile(procFile(p.pid, "cmdline")); err == nil && strings.Contains(string(line), name) && p.name == "sleep" {
				found = append(found, p)
			}
		}
		return found
	}
	defer func() {
		for _, p := range slices.Backward(tree.look(time.Now())) {
			if q, err := os.FindProcess(p.pid); err == nil {
				_ = q.Kill()
			}
		}
		_ = command.Wait()
	}()
	until := func(what func() bool) bool {
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if what() {
				return true
			}
		}
		return false
	}
	if !until(func() bool { return len(named("61")) == 1 }) {
		t.Fatal("the child of a child is not seen")
	}
	_ = wait.Close() // the middle one ends
	if !until(func() bool { return len(named("60")) == 1 }) {
		t.Fatal("the middle one goes on")
	}
	if len(named("61")) != 1 {
		t.Error("who outlives his parent is not seen any more")
	}
}

func TestSegmentsOfOthersAreNotCounted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"torch_" + strconv.Itoa(os.Getpid()) + "_1_0", "torch_1_2_0", "psm_1234", "folder/of-ours"} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, 8192), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ours := []process{{processID: processID{pid: os.Getpid()}}}
	since := time.Now().Add(-time.Minute)
	count := func(dir string, since time.Time) segments {
		files := watchShared(dir, since)
		return files.count(ours)
	}
	before := count(t.TempDir(), since).n // of the test's process itself
	if got := count(dir, since); got.n-before != 3 || got.size < 24576 || got.folder() != dir {
		t.Errorf("%d of %d bytes in %s; want ours, and those that may be", got.n-before, got.size, got.folder())
	}
	if got := count(dir, time.Now().Add(time.Minute)); got.n != 0 || got.folder() != "" {
		t.Errorf("%d that were there before", got.n)
	}
}

// TestTheFolderHasMostOfTheFiles: the deepest one with two thirds.
func TestTheFolderHasMostOfTheFiles(t *testing.T) {
	for want, in := range map[string]map[string]snapshot.Bytes{
		"":                   nil,
		"/dev/shm/run/cache": {"/dev/shm/run/cache": 7, "/dev/shm": 3},
		"/dev/shm/run":       {"/dev/shm/run/a": 5, "/dev/shm/run/b": 4, "/dev/shm": 1},
		"/dev/shm":           {"/dev/shm/run/a": 5, "/dev/shm/b": 5},
	} {
		if got := (&segments{in: in}).folder(); got != want {
			t.Errorf("%q of %v; want %q", got, in, want)
		}
	}
}

// TestFilesBeyondThoseLookedAtCount: a leak of many small files seemed to end where looks at them do.
func TestFilesBeyondThoseLookedAtCount(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "memdiag-test-") //nolint:usetesting // it is to be in shared memory
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	files := watchShared(dir, time.Now().Add(-time.Minute))
	const others = 2000 // files that other programs may delete meanwhile: the sum is of the whole file system
	for n := range mostSegments + 500 + others {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(n)), []byte("x"), 0o600); err != nil {
			t.Skip(err) // it is full
		}
	}
	if got := files.count([]process{{processID: processID{pid: os.Getpid()}}}); got.n < mostSegments+500 || got.size < (mostSegments+500)<<12 {
		t.Errorf("%d files of %s", got.n, got.size)
	}
}

// TestSharedMemoryThatOthersMadeIsNotCounted: two trainings of one user on one machine.
func TestSharedMemoryThatOthersMadeIsNotCounted(t *testing.T) {
	f, err := os.CreateTemp("/dev/shm", "memdiag-test-")
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	defer f.Close()
	if err := f.Truncate(8192); err != nil {
		t.Fatal(err)
	}
	memory, err := syscall.Mmap(int(f.Fd()), 0, 8192, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Munmap(memory) }()
	memory[0] = 1 // before, it takes nothing
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	files := []file{{FileInfo: info}}
	var others outsiders
	if got := others.without(files, func(pid int) bool { return false }); len(got) != 0 {
		t.Error("a file is counted that another process has")
	}
	if got := others.without(files, func(pid int) bool { return true }); len(got) != 0 {
		t.Error("… and is once that process is not looked at any more")
	}
	var alone outsiders
	if got := alone.without(files, func(pid int) bool { return pid == os.Getpid() }); len(got) != 1 {
		t.Error("a file is not counted that the command has")
	}
}

// TestSharedMemoryBehindDescriptorsIsCounted: PyTorch gives such memory no name unless it is asked to.
func TestSharedMemoryBehindDescriptorsIsCounted(t *testing.T) {
	f, err := os.CreateTemp("/dev/shm", "memdiag-test-")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	if err := os.Remove(f.Name()); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	again, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(again)
	s := &found{since: time.Now().Add(-time.Minute), seen: make(map[uint64]bool)}
	s.open(os.Getpid())
	if s.n != 1 || s.size != 1<<20 {
		t.Errorf("%d segments of %s; the second descriptor is of the same", s.n, s.size)
	}
}

// TestALookWaitsForNoSums: sums that the kernel takes long to add up are taken at a later look.
func TestALookWaitsForNoSums(t *testing.T) {
	self := []process{{processID: processID{pid: os.Getpid()}}}
	began := time.Now()
	f := &followed{first: began}
	h := &host{sums: make(chan pageSums, 1), began: began, tree: &tree{known: map[processID]*followed{self[0].processID: f}}}
	if got := h.sumsOfPages(self, time.Now()); got != nil {
		t.Errorf("%v, and none were read", got)
	}
	h.sums <- pageSums{map[processID]sums{self[0].processID: {pss: 5}}, time.Second}
	if got := h.sumsOfPages(self, time.Now()); got[self[0].processID].pss != 5 || h.sums != nil {
		t.Errorf("%v", got)
	}
	if h.sumsOfPages(self, time.Now().Add(499*time.Second)); h.sums != nil {
		t.Error("what took a second is read again before it is a five-hundredth of the time")
	}
	h.sumsOfPages(self, time.Now().Add(501*time.Second))
	read := <-h.sums
	if read.of[self[0].processID].pss <= 0 || read.of[self[0].processID].ofOthers < 0 {
		t.Errorf("%v", read)
	}
	h.sums <- pageSums{read.of, time.Millisecond}
	h.sumsOfPages(self, began.Add(600*time.Second))
	if h.sumsOfPages(self, began.Add(602*time.Second)); h.sums != nil {
		t.Error("sums are read again soon, and no process has begun")
	}
	f.first = began.Add(602 * time.Second)
	if h.sumsOfPages(self, f.first); h.sums == nil {
		t.Error("a process has begun, and it is not known what it has in common with its parent")
	}
	<-h.sums
}
