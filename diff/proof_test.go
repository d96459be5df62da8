package diff

import (
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// TestWhatIsLostIsProven: births alone would call each site what the first column says.
func TestWhatIsLostIsProven(t *testing.T) {
	const lost = snapshot.OwnedByUser | snapshot.Lost
	steps := func(owners snapshot.Owners, births ...int64) []held {
		var out []held
		for _, b := range births {
			out = append(out, held{"leave", 64, b, owners, 0})
		}
		return out
	}
	for _, c := range []struct {
		name     string
		last     []held
		verdict  Verdict
		evidence Evidence
		lost     string // in the reasons
	}{
		{"steady births, all lost", steps(lost, 2, 4, 6, 8, 10), Leak, Proof, "5 of its blocks are lost"},
		{"steady births, none lost", steps(snapshot.OwnedByUser, 2, 4, 6, 8, 10), Leak, Strong, ""},
		{"steady births, one of five lost", append(steps(lost, 2), steps(snapshot.OwnedByUser, 4, 6, 8, 10)...), Leak, Strong, "1 of its blocks are lost"},
		{"two births say nothing, but both are lost", steps(lost, 2, 9), Leak, Proof, "2 of its blocks are lost"},
		{"two births, one lost", append(steps(lost, 2), steps(snapshot.OwnedByUser, 9)...), Inconclusive, Weak, "1 of its blocks are lost"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Analyze(runOf(owning(0), owning(11, c.last...)), ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			f := r.Findings[0]
			if f.Verdict != c.verdict || f.Evidence != c.evidence {
				t.Errorf("%s, %s: %v", f.Verdict, f.Evidence, f.Reasons)
			}
			if all := strings.Join(f.Reasons, "; "); c.lost == "" && strings.Contains(all, "lost") || !strings.Contains(all, c.lost) {
				t.Errorf("reasons %q, want %q", all, c.lost)
			}
		})
	}
}

func TestWhatWasLostBeforeProvesNothing(t *testing.T) {
	old := held{"leave", 64, 0, snapshot.OwnedByUser | snapshot.Lost, 0}
	last := []held{old}
	for _, birth := range []int64{2, 4, 6, 8, 10} {
		last = append(last, held{"leave", 64, birth, snapshot.OwnedByUser, 0})
	}
	r, err := Analyze(runOf(owning(1, old), owning(11, last...)), ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if f := r.Findings[0]; f.Verdict != Leak || f.Evidence != Strong {
		t.Errorf("%s, %s: %v", f.Verdict, f.Evidence, f.Reasons)
	}
}

func TestOneSnapshotProvesWhatIsLost(t *testing.T) {
	const lost = snapshot.OwnedByUser | snapshot.Lost
	for _, c := range []struct {
		name     string
		blocks   []held
		verdict  Verdict
		evidence Evidence
	}{
		{"two of three, too few births to tell otherwise", []held{{"leave", 64, 3, lost, 0}, {"leave", 64, 30, lost, 0}, {"leave", 64, 35, 1, 0}}, Leak, Proof},
		{"one of three", []held{{"leave", 64, 3, lost, 0}, {"leave", 64, 30, 1, 0}, {"leave", 64, 35, 1, 0}}, Inconclusive, Weak},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := Inspect(owning(40, c.blocks...))
			if site := a.Sites[0]; site.Verdict != c.verdict || site.Evidence != c.evidence {
				t.Errorf("%s, %s: %v", site.Verdict, site.Evidence, site.Reasons)
			}
		})
	}
}
