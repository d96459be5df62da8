package diff

import (
	"testing"

	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// Of a cache of 30 masks ever more are made in steps that nobody watches.
func TestBlocksWithoutAStackLeakOnlyWhereTheirDeviceGrows(t *testing.T) {
	for want, known := range map[Verdict]func(unknown int) int{
		Inconclusive: func(unknown int) int { return 30 - unknown },
		Leak:         func(int) int { return 30 },
	} {
		var snapshots []*snapshot.Snapshot
		for i := range 20 {
			blocks := grown("mask", known(i), 400, int64(10*i), 0)
			snapshots = append(snapshots, build(int64(10*i+1), append(blocks, grown("", i, 400, -1, 0)...)...))
		}
		r, err := Analyze(runOf(snapshots...), ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if f := r.Findings[0]; f.Verdict != want {
			t.Errorf("%s, want %s: %q", f.Verdict, want, f.Reasons)
		}
	}
}

func TestBlocksThatReplaceThoseOfAnotherLineDoNotLeak(t *testing.T) {
	for _, c := range []struct {
		name  string
		falls int                   // of four, how many of the other line's blocks go for each four that come; 5 for four, and sometimes one of a third line
		items func(renewed int) int // of the list that holds them; nil where no holder is known
		want  Verdict
	}{
		{"the device stays as it is", 4, nil, Bounded},
		{"the device varies a little", 5, nil, Inconclusive},
		{"the device grows", 0, nil, Leak},
		{"the device grows, but their list is as long as ever", 0, func(int) int { return 100 }, Inconclusive},
		{"the device grows, and their list becomes longer", 0, func(renewed int) int { return 10 + renewed }, Leak},
	} {
		var snapshots []*snapshot.Snapshot
		for i := range 20 {
			blocks := grown("preset", 100-min(c.falls, 4)*i, 512, 0, 0)
			if c.falls == 5 {
				blocks = append(blocks, grown("other", 1+i%3, 512, 0, 0)...)
			}
			s := build(int64(10*i+1), append(blocks, grown("renewed", 4*i, 512, -1, 0)...)...)
			if c.items != nil && i > 0 {
				s.Holders = []snapshot.Holder{{Stack: s.Blocks.Stack[len(s.Blocks.Stack)-1], Path: "table", Kind: "list", Items: c.items(4 * i)}}
			}
			snapshots = append(snapshots, s)
		}
		r, err := Analyze(runOf(snapshots...), ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if f := r.Findings[0]; f.Verdict != c.want {
			t.Errorf("%s: %s, want %s: %q", c.name, f.Verdict, c.want, f.Reasons)
		}
	}
}

// A recorder that watches few steps has the gradients of all models with one line, until it assigns half of them to another.
func TestADeviceThatGrowsPassesNotThoughNoLineDoes(t *testing.T) {
	var snapshots []*snapshot.Snapshot
	for i := range 20 {
		gradients, moments := 10*i, 5+i%3
		if i == 19 {
			gradients, moments = 5, 10*i
		}
		s := build(int64(10*i+1), append(grown("gradient", gradients, 512, 0, 0), grown("moment", moments, 512, 0, 0)...)...)
		for range s.Blocks.Size {
			s.Blocks.Count = append(s.Blocks.Count, 2)
		}
		snapshots = append(snapshots, s)
	}
	for want, without := range map[Verdict]series.Without{Inconclusive: {"last-jump"}, Bounded: {"last-jump", jointlyPass}} {
		options := DefaultOptions()
		options.Without = without
		r, err := options.Analyze(runOf(snapshots...))
		if err != nil {
			t.Fatal(err)
		}
		if f := r.Findings[0]; f.Verdict != want {
			t.Errorf("%s, want %s: %q", f.Verdict, want, f.Reasons)
		}
	}
}
