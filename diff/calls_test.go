package diff

import (
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// TestWhatOneCallMakesIsOneLeak: SQLAlchemy engines in a dictionary were four leaks, and one of them had a holder.
func TestWhatOneCallMakesIsOneLeak(t *testing.T) {
	for _, c := range []struct {
		name, stack, holder string
		size                snapshot.Bytes
		want                int
	}{
		{"by another line of the function", "query:33 main:45", "", 3000, 1},
		{"many times as much", "query:33 main:45", "", 6000, 2},
		{"of another function", "other:33 main:45", "", 3000, 2},
		{"called from elsewhere", "query:33 main:46", "", 3000, 2},
		{"that another list holds", "query:33 main:45", "__main__.others", 3000, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Analyze(program{
				{stack: "init:1 main:2"},
				{stack: "query:31 main:45", every: 1, size: 1000, holder: "__main__.pool"},
				{stack: c.stack, every: 1, size: c.size, holder: c.holder},
				{stack: "query:35 main:45"}, // so that not all that the call makes leaks
				{stack: "query:35 main:46"},
				{stack: "other:35 main:45"},
			}.onHeap(100, 10), ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			f := r.Findings[0]
			if r.Leaks() != c.want || c.want == 1 && (f.Rows[0].Frames[0].Line != 33 || f.Holder == nil) {
				t.Errorf("%d leaks, want %d; the first at line %d, held by %v", r.Leaks(), c.want, f.Rows[0].Frames[0].Line, f.Holder)
			}
		})
	}
}

// TestNumbersOfAGraphInAListAreOfItsLeak: of exceptions that a list kept, the numbers in their graphs, which have no stack, were a second
// leak of 5 bytes a step.
func TestNumbersOfAGraphInAListAreOfItsLeak(t *testing.T) {
	for holder, want := range map[string]int{"__main__.errors": 1, "__main__.others": 2} {
		r, err := Analyze(program{
			{stack: "init:1 main:2"},
			{stack: "step:31 main:45", every: 1, size: 64 * snapshot.KiB, holder: "__main__.errors"},
			{stack: "", every: 3, size: 8, holder: holder, kind: "graph"},
		}.run(100, 10), ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if f := r.Findings[0]; r.Leaks() != want || len(f.Rows) != 1 || f.Cause == nil || f.Cause.ID == "graph-retained" {
			t.Errorf("%d leaks, want %d; the first has %d rows, and the cause %+v", r.Leaks(), want, len(f.Rows), f.Cause)
		}
	}
}
