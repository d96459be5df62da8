package report

import (
	"bytes"
	"html"
	"slices"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

// TestAGraphThatLeaksIsNamedByItsHolder: nodes have no size of their own, which the process's growth tells.
func TestAGraphThatLeaksIsNamedByItsHolder(t *testing.T) {
	row := diff.Row{Device: snapshot.Device{Kind: snapshot.Graph}, Frames: []snapshot.Frame{{Function: "train", File: "train.py", Line: 9}}}
	row.After.Blocks, row.Born.Blocks = 765, 765
	tensors := diff.Row{Device: snapshot.Device{Kind: snapshot.CPU}, Frames: row.Frames}
	tensors.After, tensors.Born = diff.Tally{Blocks: 4, Bytes: 512}, diff.Tally{Blocks: 4, Bytes: 512}
	exactly1 := trend.Slope{Value: 1, Low: 1, High: 1, N: 2}
	rate := diff.Rate{Unit: "step", Blocks: exactly1, Bytes: trend.Slope{Value: 6 << 10, Low: 6 << 10, High: 6 << 10, N: 2}}
	nodes := &diff.Reserve{Growth: 3 << 20, Rate: rate, From: 40, To: 552}
	unknown := diff.Rate{Unit: "step", Blocks: exactly1, Bytes: trend.Slope{}}
	for name, c := range map[string]struct {
		row   *diff.Row
		rate  diff.Rate
		nodes *diff.Reserve
		want  []string
	}{
		"a sum": {&row, rate, nodes, []string{
			"1 leak: +6.00 KiB/step, the autograd graph held by `main.total`, at train.py:9",
			"+1.00 node/step, +6.00 KiB/step", "Nodes: 765 or more", "Autograd's graph: about 3.00 MiB: growth of the process beyond recorded stacks, from step 40 to step 552", "train.py:9 in train   <- the graph ends here",
		}},
		"a sum in a process that grows otherwise too": {&row, unknown, nil, []string{
			"1 leak: +1.00 node/step, the autograd graph held by `main.total`, at train.py:9", "Nodes: 765 or more",
		}},
		"tensors": {&tensors, rate, nodes, []string{
			"1 leak: +6.00 KiB/step allocated at train.py:9, with its autograd graph",
			"+1.00 block/step, +6.00 KiB/step", "Allocation size: 512 B", "Autograd's graph: about 3.00 MiB: growth of the process beyond recorded stacks, from step 40 to step 552",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := noLeak(t)
			r.Findings = []diff.Finding{{
				Rows: []*diff.Row{c.row}, Verdict: diff.Leak, Evidence: diff.Strong, Rate: c.rate, Nodes: c.nodes,
				Holder: &snapshot.Holder{Kind: snapshot.Nodes, Path: "main.total", Items: 765},
			}}
			if got := Headline(r); got != c.want[0] {
				t.Errorf("the headline is %q", got)
			}
			text := string(rendered(t, func(b *bytes.Buffer) error { return Text(b, r, TextOptions{Width: 1000}) }))
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("the text lacks %q:\n%s", want, text)
				}
			}
			if strings.Contains(text, "no memory in use: graph") {
				t.Error("autograd's graph is listed as a device")
			}
			for name, write := range map[string]func(*bytes.Buffer) error{
				"Markdown": func(b *bytes.Buffer) error { return Markdown(b, r, TextOptions{}) },
				"page":     func(b *bytes.Buffer) error { return Page(b, r, About{}) },
			} {
				if got := html.UnescapeString(string(rendered(t, write))); c.nodes != nil && !strings.Contains(got, "+3.00 MiB") && c.row == &row {
					t.Errorf("%s lacks what the graph takes", name)
				}
			}
		})
	}
}

// TestItemsThatLeakAreNamedByTheirContainer: the process's growth is their size, and the line may be unknown.
func TestItemsThatLeakAreNamedByTheirContainer(t *testing.T) {
	slope := trend.Slope{Value: 6 << 10, Low: 6 << 10, High: 6 << 10, N: 9}
	rate := diff.Rate{Unit: "step", Blocks: trend.Slope{Value: 1, Low: 1, High: 1, N: 9}, Bytes: slope}
	for name, c := range map[string]struct {
		frames   []snapshot.Frame
		headline int
		from     snapshot.StackID
		want     []string
	}{
		"a line at which malloc's memory grows": {[]snapshot.Frame{{Function: "draw", File: "draw.py", Line: 9}}, 0, snapshot.NoStack, []string{
			"1 leak: +6.00 KiB/step held by `plt.figs`, allocated at draw.py:9", "draw.py:9 in draw   <- allocated here",
		}},
		"a line that was seen": {[]snapshot.Frame{{Function: "draw", File: "draw.py", Line: 9}}, 0, 1, []string{
			"1 leak: +6.00 KiB/step held by `plt.figs`, filled at draw.py:9", "draw.py:9 in draw   <- filled here",
		}},
		"no line": {[]snapshot.Frame{{Function: "plt.figs"}}, -1, snapshot.NoStack, []string{"1 leak: +6.00 KiB/step held by `plt.figs`, source line unknown"}},
	} {
		t.Run(name, func(t *testing.T) {
			row := diff.Row{Device: snapshot.Device{Kind: snapshot.Items, Index: 3}, Frames: c.frames}
			row.After.Blocks, row.Born.Blocks = 98, 98
			r := noLeak(t)
			r.Findings = []diff.Finding{{
				Rows: []*diff.Row{&row}, Verdict: diff.Leak, Evidence: diff.Strong, Rate: rate, Headline: c.headline,
				Nodes:  &diff.Reserve{Device: snapshot.Device{Kind: snapshot.Process}, Growth: 3 << 20, Rate: rate, From: 40, To: 552},
				Holder: &snapshot.Holder{Kind: "dict", Path: "plt.figs", Items: 98, From: c.from},
			}}
			if got := Headline(r); got != c.want[0] {
				t.Errorf("the headline is %q", got)
			}
			text := string(rendered(t, func(b *bytes.Buffer) error { return Text(b, r, TextOptions{Width: 1000}) }))
			for _, want := range append(c.want[1:], "+1.00 item/step, +6.00 KiB/step", "Items: +98", "Memory: about 3.00 MiB: growth of the process beyond recorded stacks, from step 40 to step 552", "Held by: dict `plt.figs` (98 items)", "Device: host:0") {
				if !strings.Contains(text, want) {
					t.Errorf("the text lacks %q:\n%s", want, text)
				}
			}
			finding, _, _ := strings.Cut(text, "Live memory")
			for _, stray := range []string{"items:3", "Autograd", "blocks", "allocated"} {
				if strings.Contains(finding, stray) && !slices.ContainsFunc(c.want, func(w string) bool { return strings.Contains(w, stray) }) {
					t.Errorf("the text has %q:\n%s", stray, text)
				}
			}
		})
	}
}

// TestHooksOfWhichNothingTellsWhatTheyTake: they grow in the process, by an unknown size.
func TestHooksOfWhichNothingTellsWhatTheyTake(t *testing.T) {
	row := diff.Row{Device: snapshot.Device{Kind: snapshot.Items, Index: 3}, Frames: []snapshot.Frame{{Function: "watch", File: "watch.py", Line: 9}}}
	row.After.Blocks, row.Born.Blocks = 98, 98
	r := noLeak(t)
	r.Findings = []diff.Finding{{
		Rows: []*diff.Row{&row}, Verdict: diff.Leak, Evidence: diff.Strong, Uncounted: true,
		Rate:   diff.Rate{Unit: "step", Blocks: trend.Slope{Value: 1, Low: 1, High: 1, N: 9}},
		Holder: &snapshot.Holder{Kind: "dict", Path: "model._forward_hooks", Items: 98, From: 1},
	}}
	text := string(rendered(t, func(b *bytes.Buffer) error { return Text(b, r, TextOptions{Width: 1000}) }))
	for _, want := range []string{"1 leak: +1.00 item/step held by `model._forward_hooks`, filled at watch.py:9", "Device: host:0"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
}

// TestWhatAHolderKeepsBesideTensorsIsCountedWithThem: items that the process shows, and lines of Python's heap.
func TestWhatAHolderKeepsBesideTensorsIsCountedWithThem(t *testing.T) {
	slope := trend.Slope{Value: 6 << 10, Low: 6 << 10, High: 6 << 10, N: 9}
	rate := diff.Rate{Unit: "step", Blocks: trend.Slope{Value: 1, Low: 1, High: 1, N: 9}, Bytes: slope}
	tensors := diff.Row{Device: snapshot.Device{Kind: snapshot.CPU}, Frames: []snapshot.Frame{{Function: "train", File: "train.py", Line: 9}}}
	tensors.After, tensors.Born = diff.Tally{Blocks: 98, Bytes: 512}, diff.Tally{Blocks: 98, Bytes: 512}
	items := diff.Row{Device: snapshot.Device{Kind: snapshot.Items}}
	keys := diff.Row{Device: snapshot.Device{Kind: snapshot.PythonHeap}, After: diff.Tally{Blocks: 98, Bytes: 3 << 20}}
	for name, c := range map[string]struct {
		behind *diff.Row
		nodes  *diff.Reserve
		beside snapshot.Bytes
		want   string
	}{
		"items": {&items, &diff.Reserve{Device: snapshot.Device{Kind: snapshot.Process}, Growth: 3 << 20, Rate: rate, From: 40, To: 552}, 0, "Objects: about 3.00 MiB: growth of the process beyond recorded stacks, from step 40 to step 552"},
		"keys":  {&keys, nil, 3 << 20, "Also holds: +3.00 MiB on python:0"},
	} {
		t.Run(name, func(t *testing.T) {
			r := noLeak(t)
			r.Findings = []diff.Finding{{
				Rows: []*diff.Row{&tensors}, Behind: []*diff.Row{c.behind}, Verdict: diff.Leak, Evidence: diff.Strong, Rate: rate,
				Nodes: c.nodes, Beside: c.beside, Holder: &snapshot.Holder{Kind: "dict", Path: "main.cache", Items: 98},
			}}
			if got, want := Headline(r), "1 leak: +6.00 KiB/step allocated at train.py:9, with all else that `main.cache` holds"; got != want {
				t.Errorf("the headline is %q", got)
			}
			text := string(rendered(t, func(b *bytes.Buffer) error { return Text(b, r, TextOptions{Width: 1000}) }))
			if !strings.Contains(text, c.want) || strings.Contains(text, "Autograd") {
				t.Errorf("the text lacks %q, or speaks of a graph:\n%s", c.want, text)
			}
			if got := grown(&r.Findings[0]); got != 3<<20+512 {
				t.Errorf("it grew by %s", got)
			}
		})
	}
}
