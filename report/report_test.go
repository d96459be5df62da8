package report

import (
	"bytes"
	"html"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

func TestHeadline(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*diff.Result)
		want   string
	}{
		{"one leak is named with its rate", func(*diff.Result) {}, "1 leak: +512 KiB/step allocated at engine/workload/feature_pyramid.go:88"},
		{"of two leaks the first is named", func(r *diff.Result) {
			for i := range r.Findings {
				r.Findings[i].Verdict = diff.Leak
			}
		}, "2 leaks, +41.0 MiB in all; the largest: +512 KiB/step allocated at engine/workload/feature_pyramid.go:88"},
		{"a leak without a frame of the user's is named by its operation", func(r *diff.Result) { r.Findings[0].Headline = -1 },
			"1 leak: +512 KiB/step allocated at engine/ops.go:45"},
		{"a leak without a stack says so", func(r *diff.Result) { r.Findings[0].Headline, r.Findings[0].Rows[0].Frames = -1, nil },
			"1 leak: +512 KiB/step allocated without a recorded stack"},
		{"a path with spaces has plain spaces", func(r *diff.Result) { r.Findings[0].Rows[0].Frames[3].File = "my dir/a b.go" },
			"1 leak: +512 KiB/step allocated at my dir/a b.go:88"},
		{"no leak tells the sites and the growth", func(r *diff.Result) { r.Findings = nil }, "no leak found among 5 call sites; live memory +40.0 MiB"},
		{"the wrong order is no verdict", func(r *diff.Result) {
			r.Findings, r.Intermediate = nil, 0
			r.First, r.Last = r.Last, r.First
		}, "no verdict: step 50 is compared with the earlier step 0; live memory +40.0 MiB"},
		{"a snapshot and itself are none", func(r *diff.Result) {
			r.Findings, r.Intermediate, r.First = nil, 0, r.Last
			r.Rows = []diff.Row{{Before: diff.Tally{Blocks: 1}, After: diff.Tally{Blocks: 1}}}
		}, "no verdict: the two snapshots are equal; live memory unchanged"},
		{"a small inconclusive finding is a possible leak, too", func(r *diff.Result) {
			r.Findings[0].Verdict, r.Findings[0].Rows = diff.Inconclusive, []*diff.Row{{After: diff.Tally{Blocks: 1, Bytes: 512}}}
		}, "possible leak: +512 KiB/step allocated at ; live memory +40.0 MiB"},
		{"most of what grew is inconclusive", func(r *diff.Result) { r.Findings[0].Verdict = diff.Inconclusive },
			"possible leak: +512 KiB/step allocated at engine/workload/feature_pyramid.go:88; live memory +40.0 MiB"},
		{"a finding of several sites is one possible leak", func(r *diff.Result) {
			f := &r.Findings[0]
			f.Verdict, f.Rows = diff.Inconclusive, append(f.Rows, f.Rows[0])
		}, "possible leak: +512 KiB/step allocated at engine/workload/feature_pyramid.go:88; live memory +40.0 MiB"},
		{"a run too short to show a leak", func(r *diff.Result) {
			r.Findings[0].Verdict = diff.Inconclusive
			r.Last.Mark.Step = r.First.Mark.Step + 3
			r.Series = series.Collect(&snapshot.Run{Snapshots: []*snapshot.Snapshot{r.First, r.Last}})
		}, "possible leak: +512 KiB/step allocated at engine/workload/feature_pyramid.go:88; live memory +40.0 MiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := pyramidResult(t)
			c.change(r)
			if got := Headline(r); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestRates(t *testing.T) {
	point := func(v float64) trend.Slope { return trend.Slope{Value: v, Low: v, High: v} }
	for _, c := range []struct {
		name          string
		rate          diff.Rate
		blocks, bytes string
	}{
		{"one block a step", diff.Rate{Unit: "step", Blocks: point(1), Bytes: point(512)}, "+1.00 block/step", "+512 B/step"},
		{"several blocks a snapshot", diff.Rate{Unit: "snapshot", Blocks: point(1234.4), Bytes: point(1.5 * (1 << 20))}, "+1,234 blocks/snapshot", "+1.50 MiB/snapshot"},
		{"a rare block is told by its interval", diff.Rate{Unit: "step", Blocks: point(0.004), Bytes: point(2.048)}, "+1 block every 250 steps", "+2.05 B/step"},
		{"a byte that is as rare too", diff.Rate{Unit: "step", Blocks: point(1e-6), Bytes: point(0.004)}, "+1 block every 1,000,000 steps", "+1 B every 250 steps"},
		{"bytes of as many blocks", diff.Rate{Unit: "step", Blocks: point(0), Bytes: point(512)}, "0 blocks/step", "+512 B/step"},
		{"shrinkage has a minus", diff.Rate{Unit: "step", Blocks: point(-2), Bytes: point(-2048)}, "-2.00 blocks/step", "-2.00 KiB/step"},
		{"an interval with zero in it has a tilde", diff.Rate{Unit: "step", Blocks: trend.Slope{Value: 0.5, Low: 0, High: 1}, Bytes: trend.Slope{Value: 10, Low: -1, High: 20}},
			"~+0.50 block/step", "~+10 B/step"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := blocksRate(c.rate, "block"); got != c.blocks {
				t.Errorf("blocks: %s, want %s", got, c.blocks)
			}
			if got := bytesRate(c.rate); got != c.bytes {
				t.Errorf("bytes: %s, want %s", got, c.bytes)
			}
		})
	}
}

// TestTheRateIsHeldToTheGrowth: a recorder of some steps may see a site best where it is
// least busy.
func TestTheRateIsHeldToTheGrowth(t *testing.T) {
	rate := diff.Rate{Unit: "step", Bytes: trend.Slope{Value: 2048, Low: 1454, High: 2048}}
	if got := overallText(diff.Tally{Blocks: 442, Bytes: 442 * 2048}, 945, rate); !strings.Contains(got, "+0.47") || !strings.Contains(got, "+958") {
		t.Errorf("got %q; want 0.47 blocks and 958 B a step", got)
	}
	for steps, r := range map[int64]diff.Rate{442: rate, 0: rate, 945: {Unit: "snapshot"}} {
		if got := overallText(diff.Tally{Blocks: 442, Bytes: 442 * 2048}, steps, r); got != "" {
			t.Errorf("%d steps: %q; want nothing", steps, got)
		}
	}
}

// TestALengthOfAnEarlierStepSaysSo: a chain is counted by a walk, which is none of each snapshot.
func TestALengthOfAnEarlierStepSaysSo(t *testing.T) {
	h := snapshot.Holder{Kind: "chain", Path: "main.<locals>.w.parent…", Items: 75, Counted: 1080}
	if got, want := strings.ReplaceAll(heldBy(&h, 0), noBreak, " "), "chain `main.<locals>.w.parent…` (75 items at step 1,080)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestAHolderOfGraphsIsNotCalledAGraph: it is a list of losses, or one loss.
func TestAHolderOfGraphsIsNotCalledAGraph(t *testing.T) {
	for items, want := range map[int]string{40: "graphs in `__main__.losses` (40 items)", 0: "graph of `__main__.losses`"} {
		h := snapshot.Holder{Kind: "graph", Path: "__main__.losses", Items: items}
		if got := strings.ReplaceAll(heldBy(&h, 0), noBreak, " "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestWhatNoStackExplainsIsInEveryReport has what an allocator, or the process, took by
// itself: each kind with its cause and where to read more.
func TestWhatNoStackExplainsIsInEveryReport(t *testing.T) {
	for _, m := range []cause.Meter{cause.PendingFree, cause.PrivatePool, cause.CacheGrowth, cause.Fragmentation, cause.UnsplitWaste, cause.Host} {
		t.Run(string(m), func(t *testing.T) {
			r := noLeak(t)
			c := cause.Matches(&cause.Evidence{Meter: m})[0].Cause
			r.Reserves = []diff.Reserve{{Device: r.Series.Devices[0], Meter: m, Growth: 100 * snapshot.MiB, Cause: c}}
			if m == cause.Host {
				r.Reserves[0].Rate = diff.Rate{Unit: "step", Bytes: trend.Slope{Value: 2048, Low: 2000, High: 2100, N: 20}}
				r.Reserves[0].Graph = &snapshot.Holder{Kind: snapshot.Nodes, Path: "main.<locals>.ema.v", Items: 3905}
				if got, want := Headline(r), "possible leak outside recorded stacks: the process grows by 2.00 KiB/step; "; !strings.HasPrefix(got, want) {
					t.Errorf("the headline is %q, want %q", got, want)
				}
			}
			for name, write := range map[string]func(*bytes.Buffer) error{
				"text":     func(b *bytes.Buffer) error { return Text(b, r, TextOptions{Width: 1000}) },
				"Markdown": func(b *bytes.Buffer) error { return Markdown(b, r, TextOptions{}) },
				"page":     func(b *bytes.Buffer) error { return Page(b, r, About{}) },
			} {
				got := html.UnescapeString(strings.NewReplacer("<code>", "`", "</code>", "`").Replace(string(rendered(t, write))))
				wanted := []string{"100 MiB", r.Reserves[0].Fix(), "memdiag explain " + c.ID}
				if m == cause.Host {
					wanted = append(wanted, "graph `main.<locals>.ema.v` (3,905 nodes or more)")
				}
				for _, want := range wanted {
					if !strings.Contains(strings.ReplaceAll(got, `\`, ""), want) && !strings.Contains(got, want) {
						t.Errorf("%s lacks %q", name, want)
					}
				}
			}
			got := string(rendered(t, func(b *bytes.Buffer) error { return JSON(b, r) }))
			if m == cause.Host != strings.Contains(got, `"value": 2048`) {
				t.Error("JSON tells the rate of the process alone")
			}
			if !strings.Contains(got, `"cause": "`+c.ID+`"`) {
				t.Errorf("JSON lacks the cause %q", c.ID)
			}
		})
	}
}
