package diff

import "testing"

// TestTheLeastLeakOfAShortRunIsFound holds what a run of a few steps is said to show
// against a leak of a block in each step.
func TestTheLeastLeakOfAShortRunIsFound(t *testing.T) {
	for length := int64(1); length <= 20; length++ {
		for _, every := range []int64{1, 2, length} {
			all := runOf()
			for step := int64(0); step <= length; step++ {
				if step%every == 0 || step == length {
					all.Snapshots = append(all.Snapshots, build(step, grown("keep", int(step), 512, 0, 1)...))
				}
			}
			r, err := Analyze(all, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if least := r.Least(); (least.Every > 0) != (r.Leaks() > 0) || least.Every > length {
				t.Errorf("%d steps, a snapshot each %d: %+v; a block in each is called %s: %v", length, every, least, r.Findings[0].Verdict, r.Findings[0].Reasons)
			}
		}
	}
}
