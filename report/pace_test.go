package report

import (
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/snapshot"
)

func TestPaceInWords(t *testing.T) {
	for _, c := range []struct {
		want  string
		pace  diff.Pace
		shape diff.Shape
	}{
		{"+1 block of 4.00 KiB each step", diff.Pace{Event: cause.Steps, Every: 1, Events: 10, Blocks: 1, Bytes: 4096, Each: 4096}, ""},
		{"+1 block each step, of 4.00 KiB on average", diff.Pace{Event: cause.Steps, Every: 1, Events: 10, Blocks: 1, Bytes: 4096, Each: 4096, Sizes: true}, ""},
		{"+2 blocks, +8.00 KiB, every 1,200 steps", diff.Pace{Event: cause.Steps, Every: 1200, Events: 10, Blocks: 2, Bytes: 8192}, ""},
		{"+1 block of 8.00 MiB each epoch", diff.Pace{Event: cause.Epochs, Every: 50, Events: 4, Blocks: 1, Bytes: 8 << 20, Each: 8 << 20}, ""},
		{"+1.50 blocks, +512 B, in each evaluation only on average", diff.Pace{Event: cause.Evaluations, Every: 50, Events: 4, Blocks: 1.5, Bytes: 512}, ""},
		{"+1 block of 512 B at each checkpoint only", diff.Pace{Event: cause.Checkpoints, Every: 50, Events: 4, Blocks: 1, Bytes: 512, Each: 512}, ""},
		{"+1 block of 512 B at irregular steps, 7 times so far", diff.Pace{Event: cause.Irregular, Every: 5, Events: 7, Blocks: 1, Bytes: 512, Each: 512}, ""},
		{"+512 B each step, in blocks that replace smaller ones", diff.Pace{Event: cause.Steps, Every: 1, Events: 7, Bytes: 512}, diff.BytesOnly},
		{"+1 block of 512 B each step", diff.Pace{Event: cause.Steps, Every: 1, Events: 100, Blocks: 0.98, Bytes: 502, Each: 512}, ""},
		{"more each step, +512 B on average", diff.Pace{Event: cause.Steps, Every: 1, Events: 7, Blocks: 8, Bytes: 512}, diff.Quadratic},
	} {
		t.Run(c.want, func(t *testing.T) {
			if got := paceText(&diff.Finding{Pace: &c.pace, Shape: c.shape}); got != c.want {
				t.Errorf("got %q", got)
			}
		})
	}
	if got := paceText(&diff.Finding{}); got != "" {
		t.Errorf("got %q of no pace", got)
	}
}

func TestSpansOfDaysAreDays(t *testing.T) {
	for want, d := range map[string]time.Duration{"2.50 days": 60 * time.Hour, "47.0 h": 47 * time.Hour, "1.50 s": 1500 * time.Millisecond} {
		if got := span(d); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAShortRunThatShowsALeakIsNotSaidToShowNone(t *testing.T) {
	at := func(step int64) *snapshot.Snapshot { return &snapshot.Snapshot{Mark: snapshot.Mark{Step: step}} }
	run := &snapshot.Run{Snapshots: []*snapshot.Snapshot{at(0), at(10)}}
	r, err := diff.Analyze(run, diff.ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := leastText(r), "to prove a leak; that takes about 50 more steps"; !strings.HasSuffix(got, want) {
		t.Errorf("without a leak: %q; want it to end in %q", got, want)
	}
	r.Findings = []diff.Finding{{Verdict: diff.Leak}}
	if got, want := leastText(r), "to show slower leaks; that takes about 50 more steps"; !strings.HasSuffix(got, want) {
		t.Errorf("with a leak: %q; want it to end in %q", got, want)
	}
}

// TestForecastsHaveTheDigitsThatTheirIntervalLeaves, and none is made of what comes too late.
func TestForecastsHaveTheDigitsThatTheirIntervalLeaves(t *testing.T) {
	r, none := pyramidResult(t), snapshot.NoStep
	for i := range r.Findings {
		r.Findings[i].RunsOut = nil // else others take of the memory
	}
	for _, c := range []struct {
		name string
		at   diff.Forecast
		want string
	}{
		{"a narrow interval", diff.Forecast{Step: 4084, Low: 4082, High: 4094}, "step 4,084 (4,082 to 4,094)"},
		{"a wide one", diff.Forecast{Step: 45_729, Low: 45_198, High: 49_252}, "step 46,000 (45,000 to 50,000)"},
		{"a point", diff.Forecast{Step: 4084, Low: 4084, High: 4084}, "step 4,084"},
		{"an end that is not known", diff.Forecast{Step: 4084, Low: 3082, High: 15_900, Open: true}, "step 4,000 (3,000 to more than 16,000)"},
		{"too far", diff.Forecast{Step: none, Low: none, High: none, Beyond: true, Far: 15_900}, "not within 15,900 steps, 100 times this run (2.00 GiB on cuda:0)"},
		{"by the clock", diff.Forecast{Step: none, Low: none, High: none, After: 3*time.Hour + 13*time.Minute, AfterLow: 2 * time.Hour, AfterHigh: 9 * time.Hour}, "3 h after the last snapshot (2 h to 9 h)"},
		{"by the clock, narrow", diff.Forecast{Step: none, Low: none, High: none, After: 3*time.Hour + 13*time.Minute, AfterLow: 3*time.Hour + 12*time.Minute, AfterHigh: 3*time.Hour + 14*time.Minute}, "3.22 h after the last snapshot (3.20 h to 3.23 h)"},
	} {
		f := r.Findings[0]
		c.at.Limit = 2 * snapshot.GiB
		f.RunsOut = &c.at
		want := c.want
		if !c.at.Beyond {
			want += ", of 2.00 GiB on cuda:0"
		}
		if got := strings.ReplaceAll(runsOutText(r, &f), noBreak, " "); got != want {
			t.Errorf("%s: %q, want %q", c.name, got, want)
		}
	}
}
