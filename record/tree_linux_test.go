package record

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"
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
		for _, p := range slices.Backward(processTree(root)) {
			if q, err := os.FindProcess(p.pid); err == nil {
				_ = q.Kill()
			}
		}
		_ = command.Wait()
	}()
	const all = 4 // the two shells, and two that sleep
	for until := time.Now().Add(10 * time.Second); len(processTree(root)) < all && time.Now().Before(until); {
		time.Sleep(10 * time.Millisecond)
	}
	tree, below := processTree(root), allChildren()
	if len(tree) != all || tree[0].pid != root {
		t.Fatalf("%+v below %d; want %d", tree, root, all)
	}
	for _, p := range tree {
		listed, told := children(p.pid), below(p.pid)
		slices.Sort(listed)
		slices.Sort(told)
		if !slices.Equal(listed, told) {
			t.Errorf("process %d: the kernel lists %v, and %v name it as their parent", p.pid, listed, told)
		}
	}
}
