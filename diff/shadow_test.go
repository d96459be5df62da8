package diff

import (
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// TestOneLargeBlockHidesNoLeakAtItsLine: in bytes a line makes one jump, and one that loses a block a step goes on.
func TestOneLargeBlockHidesNoLeakAtItsLine(t *testing.T) {
	for _, c := range []struct {
		name  string
		every int64
		want  Verdict
	}{
		{"a block a step is lost", 1, Leak},
		{"a block in five steps is lost", 5, Leak},
		{"all was allocated at first", 1000, Bounded},
	} {
		var run snapshot.Run
		for step := int64(0); step <= 120; step += 10 {
			held := grown("x", int((step+c.every-1)/c.every), 512, 0, c.every)
			if step > 60 {
				held = append(held, grown("x", 1, 1<<20, 60, 0)...)
			}
			run.Snapshots = append(run.Snapshots, build(step, held...))
		}
		if verdict, why := verdictOf(t, &run); verdict != c.want {
			t.Errorf("%s: %s, %q", c.name, verdict, why)
		}
	}
}
