package diff

import "testing"

// Snapshots lie ever further apart, so that a leak that begins late is one jump.
func TestWhatBeginsInTheLastIntervalOfStepsIsUndecided(t *testing.T) {
	marks := []int64{1, 50, 100, 150, 200, 250, 320, 420, 540, 710, 930}
	for _, c := range []struct {
		name string
		born []block
		want Verdict
	}{
		{"a block a step, up to the end", grown("keep", 210, 512, 720, 1), Inconclusive},
		{"one in 20 steps, up to the end", grown("keep", 10, 512, 730, 20), Inconclusive},
		{"210 blocks at once", grown("once", 210, 512, 900, 0), Bounded},
		{"it filled up early in the interval", grown("cache", 40, 512, 715, 1), Bounded},
		{"it began two intervals ago", grown("keep", 380, 512, 545, 1), Inconclusive},
	} {
		run := runOf()
		for _, step := range marks {
			blocks := grown("init", 4, 512, 0, 0)
			for _, b := range c.born {
				if b.birth < step {
					blocks = append(blocks, b)
				}
			}
			run.Snapshots = append(run.Snapshots, build(step, blocks...))
		}
		r, err := Analyze(run, ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if f := r.Findings[0]; f.Verdict != c.want {
			t.Errorf("%s: %s, want %s: %q", c.name, f.Verdict, c.want, f.Reasons)
		}
	}
}
