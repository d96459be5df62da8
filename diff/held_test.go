package diff

import (
	"testing"
)

func TestWhatALeakingListHoldsBesidesIsOneLeakWithIt(t *testing.T) {
	for _, c := range []struct {
		name, other string
		want        int // findings
	}{
		{"one list", "mem.memory", 1},
		{"two lists", "mem.other", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := program{
				{stack: "init:1 main:2"},
				{stack: "step:31 main:45", every: 1, size: 4096, holder: "mem.memory"},
				{stack: "reset:24 main:47", every: 41, size: 1024, holder: c.other},
			}
			r, err := Analyze(p.run(100, 10), ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Findings) != c.want {
				t.Fatalf("%d findings, want %d: %+v", len(r.Findings), c.want, r.Findings)
			}
			leak := &r.Findings[0]
			if leak.Verdict != Leak || leak.Rows[0].Frames[leak.Headline].Function != "step" || leak.Joined != 2-c.want {
				t.Errorf("%s at %v, %d joined", leak.Verdict, leak.Rows[0].Frames, leak.Joined)
			}
			if want := leak.Growth().Blocks; c.want == 1 && want != 103 {
				t.Errorf("%d blocks, want 103", want)
			}
		})
	}
}
