package diff

import (
	"fmt"
	"testing"

	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// TestBlocksWithAStackEachLeak: code that is generated anew, or a recursion, gives each block of a leak a stack of its own.
func TestBlocksWithAStackEachLeak(t *testing.T) {
	const apart, marks = 20, 14
	generated := func(step int) []snapshot.Frame {
		return []snapshot.Frame{{Function: "forward", File: fmt.Sprintf("<eval_with_key>.%d", step), Line: 5}, {Function: "run", File: "run.py", Line: 8}, {Function: "main", File: "main.py", Line: 3}}
	}
	weights := []snapshot.Frame{{Function: "build", File: "model.py", Line: 2}, {Function: "main", File: "main.py", Line: 1}}
	for _, c := range []struct {
		name    string
		alive   func(born, now int) bool
		births  bool
		without series.Without
		want    Verdict // of the largest finding
	}{
		{"kept", func(int, int) bool { return true }, true, nil, Leak},
		{"kept, births unknown", func(int, int) bool { return true }, false, nil, Leak},
		{"kept, each site by itself", func(int, int) bool { return true }, true, series.Without{scatteredPass}, Bounded},
		{"up to half-way", func(born, _ int) bool { return born < apart*marks/2 }, true, nil, Bounded},
		{"the last 30", func(born, now int) bool { return born > now-30 }, true, nil, Bounded},
		{"made once", func(born, _ int) bool { return born == 31 }, true, nil, Bounded},
	} {
		t.Run(c.name, func(t *testing.T) {
			var snapshots []*snapshot.Snapshot
			for mark := range marks {
				now := apart * mark
				s := build(int64(now))
				addBlock(s, weights, 0)
				for born := 1; born <= now; born++ {
					if c.alive(born, now) {
						addBlock(s, generated(born), born)
					}
				}
				if !c.births {
					s.Blocks.BirthStep = nil
				}
				snapshots = append(snapshots, s)
			}
			options := DefaultOptions()
			options.Without = c.without
			r, err := options.Analyze(runOf(snapshots...))
			if err != nil {
				t.Fatal(err)
			}
			f := &r.Findings[0]
			if f.Verdict != c.want {
				t.Fatalf("%s, want %s: %q", f.Verdict, c.want, f.Reasons)
			}
			if f.Verdict == Leak {
				if line := f.Rows[0].Frames[f.Headline]; line.File != "run.py" || len(r.Findings) > 1 || f.Rate.Bytes.Value != 1<<15 {
					t.Errorf("at %v, %d findings, %v bytes a step", line, len(r.Findings), f.Rate.Bytes.Value)
				}
			}
		})
	}
}
