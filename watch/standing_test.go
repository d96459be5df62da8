package watch_test

import (
	"strings"
	"testing"

	"github.com/memdiag/memdiag/watch"
)

func TestARunsStandingFollowsItsLooks(t *testing.T) {
	t.Parallel()
	out, f := follow(t)
	var standings []watch.Standing
	for step := range int64(120) {
		if err := out.WriteSnapshot(step, leaking(step)); err != nil {
			t.Fatal(err)
		}
		if step%8 > 0 {
			continue
		}
		s := next(t, f).Standing(nil, nil)
		if n := len(standings); n == 0 || standings[n-1].Verdict != s.Verdict {
			standings = append(standings, s)
		}
	}
	want := []string{"too early to tell", "no leak so far", "possible leak", "leak"}
	for i, s := range standings {
		if i >= len(want) || s.Verdict != want[i] || strings.Contains(s.Text, "train.py:3") != (i >= 2) || s.Leaks != i/3 || s.Step != nil {
			t.Errorf("standing %d of %d: %+v", i, len(standings), s)
		}
	}
	if len(standings) != len(want) {
		t.Errorf("%d standings, want %d", len(standings), len(want))
	}
}
