package diff

import (
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// TestAContainerThatBecomesLongerWithAllOfADeviceHoldsItsLeak: an optimizer a fold, of a recorder that watches one step in 64 and takes
// blocks of one line for another's, was undecided, though the tensors were counted and the list was known.
func TestAContainerThatBecomesLongerWithAllOfADeviceHoldsItsLeak(t *testing.T) {
	longer := func(i int) int { return i + 1 }
	for _, c := range []struct {
		name  string
		from  int // the first snapshot that tells of the container
		items func(i int) int
		kind  string
		total func(i int) int // blocks on the device
		leaks bool
	}{
		{"in proportion", 1, longer, "list", func(i int) int { return 10 + 4*i }, true},
		{"known late", 14, longer, "list", func(i int) int { return 10 + 4*i }, true},
		{"known of three snapshots", 17, longer, "list", func(i int) int { return 10 + 4*i }, false},
		{"as long as ever", 1, func(int) int { return 20 }, "list", func(i int) int { return 10 + 4*i }, false},
		{"longer at once", 1, func(i int) int { return 1 + i/10*20 }, "list", func(i int) int { return 10 + 4*i }, false},
		{"a variable", 1, longer, "attribute", func(i int) int { return 10 + 4*i }, false},
		{"the device is full", 1, func(i int) int { return min(i, 16) + 1 }, "list", func(i int) int { return 20 + 4*min(i, 16) }, false},
		{"the device stays as it is", 1, longer, "list", func(int) int { return 86 }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var all []*snapshot.Snapshot
			for i, mine := range []int{1, 2, 1, 3, 2, 5, 3, 6, 2, 8, 5, 9, 4, 10, 7, 12, 6, 13, 8, 15} {
				step := int64(10 * i)
				blocks := append(grown("fold", mine, 4096, max(0, step-40), 2), grown("other", c.total(i)-mine, 4096, max(0, step-7), 0)...)
				s := build(step, blocks...)
				s.Blocks.Count = make([]int64, len(blocks))
				for k := range blocks {
					s.Blocks.Count[k] = 1
				}
				s.Blocks.Count[0], s.Blocks.Size[0], s.Blocks.Requested[0] = 2, 2*4096, 2*4096
				if i >= c.from {
					s.Holders = []snapshot.Holder{{Stack: s.Blocks.Stack[0], Path: "accelerator._optimizers", Kind: c.kind, Items: c.items(i)}}
				}
				all = append(all, s)
			}
			r, err := Analyze(runOf(all...), ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if leaks := r.Leaks() > 0; leaks != c.leaks || leaks && r.Findings[0].Rows[0].Frames[1].Function != "fold" {
				t.Errorf("%d leaks: %q", r.Leaks(), r.Findings[0].Reasons)
			}
		})
	}
}

// TestWhatEachEntryOfALongerContainerMakesAnewLeaks: each of ever more hooks keeps the last output, so that in each step all blocks are
// new, and the run was undecided.
func TestWhatEachEntryOfALongerContainerMakesAnewLeaks(t *testing.T) {
	for _, c := range []struct {
		name  string
		items func(i int) int
		leaks bool
	}{
		{"a hook more at each mark", func(i int) int { return i + 1 }, true},
		{"a window of fixed length", func(int) int { return 20 }, false},
		{"nobody is known to hold them", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var all []*snapshot.Snapshot
			for i := range 20 {
				s := build(int64(20*i), grown("keep", i+1, 4096, int64(20*i), 0)...)
				if c.items != nil {
					s.Holders = []snapshot.Holder{{Stack: s.Blocks.Stack[0], Path: "body._forward_hooks", Kind: "dict", Items: c.items(i)}}
				}
				all = append(all, s)
			}
			r, err := Analyze(runOf(all...), ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if leaks := r.Leaks() > 0; leaks != c.leaks {
				t.Errorf("%d leaks: %q", r.Leaks(), r.Findings[0].Reasons)
			}
		})
	}
}
