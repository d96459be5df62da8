package report

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

func TestSheets(t *testing.T) {
	for _, c := range []struct {
		name, file string
		write      func(w io.Writer, r *diff.Result) error
	}{
		{"findings come before the largest sites", "sites.svg.golden", func(w io.Writer, r *diff.Result) error {
			r.Findings[0].Rate.Bytes.Low, r.Findings[0].Rate.Bytes.High = 400*1024, 600*1024
			return Sheet(w, SVG, r, PlotOptions{})
		}},
		{"ranks share a scale", "ranks.svg.golden", func(w io.Writer, r *diff.Result) error {
			return RankSheet(w, SVG, []RankResult{{Rank: 0, Result: r}, {Rank: 1, Why: "too short"}, {Rank: 2, Result: noLeak(t)}}, PlotOptions{})
		}},
		{"owners are bands", "owners.svg.golden", func(w io.Writer, r *diff.Result) error {
			for i := range r.Rows {
				r.Rows[i].Owners = snapshot.Owners(i % 4)
			}
			return Plot(w, SVG, r, PlotOptions{Stack: StackOwners})
		}},
		{"the largest sites are bands", "topsites.svg.golden", func(w io.Writer, r *diff.Result) error {
			return Plot(w, SVG, r, PlotOptions{Stack: StackSites})
		}},
		{"a near end is drawn, with epochs and evaluations", "ahead.svg.golden", func(w io.Writer, r *diff.Result) error {
			r.Series.Devices[0].Limit = 80 * snapshot.MiB
			r.Findings[0].RunsOut = &diff.Forecast{Step: 82, Low: 78, High: 90, Limit: 80 * snapshot.MiB}
			r.Findings[0].Rate.Bytes = trend.Slope{Value: 512 * 1024, Low: 400 * 1024, High: 600 * 1024, N: 10}
			for i := range r.Series.Marks {
				r.Series.Marks[i].Epoch = int64(i / 4)
			}
			r.Series.Aside = []snapshot.Mark{{Step: 20, Phase: "eval"}, {Step: 40, Phase: "eval"}, {Step: snapshot.NoStep, Phase: "lost"}}
			return Plot(w, SVG, r, PlotOptions{})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := pyramidResult(t)
			golden(t, c.file, rendered(t, func(b *bytes.Buffer) error { return c.write(b, r) }))
		})
	}
}

// A heap profile of JAX has compiled programs, which take no bytes of a device.
func TestASiteThatNeverHeldAByteIsNotDrawn(t *testing.T) {
	r := noLeak(t)
	panels, left := sitePanels(r)
	all := len(panels) + left.still
	row := &r.Rows[len(r.Rows)-1]
	clear(r.Series.Site(row).Bytes)
	row.After = diff.Tally{Blocks: 1}
	if panels, left = sitePanels(r); len(panels)+left.still != all-1 {
		t.Errorf("%d plots of %d", len(panels)+left.still, all)
	}
}

// emptied is a run whose sites hold nothing.
func emptied(t *testing.T) *diff.Result {
	r := noLeak(t)
	for i := range r.Rows {
		clear(r.Series.Site(&r.Rows[i]).Bytes)
	}
	return r
}

func TestSheetsRefuseWhatTheyCannotDraw(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"no site", Sheet(io.Discard, SVG, analyzed(t, empty()), PlotOptions{}), "nothing to plot"},
		{"no site that ever holds a byte", Sheet(io.Discard, SVG, emptied(t), PlotOptions{}), "no call site ever holds a byte"},
		{"no rank that was judged", RankSheet(io.Discard, SVG, []RankResult{{Rank: 1}}, PlotOptions{}), "no rank has a snapshot"},
		{"a format of sites", Sheet(io.Discard, "gif", pyramidResult(t), PlotOptions{}), `"gif" is unknown`},
		{"a format of ranks", RankSheet(io.Discard, "gif", nil, PlotOptions{}), `"gif" is unknown`},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, c.err, c.want)
		}
	}
}

// TestASheetOfManyRanksHasTheOneThatLeaks: it is the last of them.
func TestASheetOfManyRanksHasTheOneThatLeaks(t *testing.T) {
	var ranks []RankResult
	for rank := range 40 {
		ranks = append(ranks, RankResult{Rank: rank, Result: noLeak(t)})
	}
	ranks = append(ranks, RankResult{Rank: 40, Result: pyramidResult(t)})
	var b strings.Builder
	if err := RankSheet(&b, SVG, ranks, PlotOptions{}); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"rank 40": true, "rank 0<": true, "rank 11": false, "1 of 41 ranks leak (12 are drawn, those that leak first)": true} {
		if strings.Contains(b.String(), text) != want {
			t.Errorf("%q is drawn: %t", text, !want)
		}
	}
}

// Two drawings of one run used to differ in the order of their fonts, and in the
// second in which they were made.
func TestAPDFIsTheSameEveryTime(t *testing.T) {
	write := func() []byte {
		return rendered(t, func(b *bytes.Buffer) error {
			return Plot(b, PDF, nearLimit(t), PlotOptions{Title: "größer · 1 … 2 漢"})
		})
	}
	first := write()
	if !bytes.HasPrefix(first, []byte("%PDF-1.")) || !bytes.HasSuffix(bytes.TrimSpace(first), []byte("%%EOF")) {
		t.Error("no PDF")
	}
	for range 3 {
		if !bytes.Equal(first, write()) {
			t.Fatal("two drawings differ")
		}
	}
}

func TestWindows1252(t *testing.T) {
	for text, want := range map[string]string{"a·b": "a\xb7b", "…–—“”": "\x85\x96\x97\x93\x94", "漢字": "..", "€Ÿ": "\x80\x9f", "größe": "gr\xf6\xdfe"} {
		if got := windows1252(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestACurveOnUnevenGroundHasNoSlope(t *testing.T) {
	draw := func(under func(i int) snapshot.Bytes) string {
		r := pyramidResult(t)
		r.Findings[0].Rate.Bytes.Low = 1
		for i := range r.Series.Meters[0] {
			r.Series.Meters[0][i].Allocated += under(i)
		}
		return string(rendered(t, func(b *bytes.Buffer) error { return Plot(b, SVG, r, PlotOptions{}) }))
	}
	const dashes = `stroke-dasharray:3,2"` // of a slope's line
	if !strings.Contains(draw(func(int) snapshot.Bytes { return 0 }), dashes) {
		t.Error("no slope on even ground")
	}
	if strings.Contains(draw(func(i int) snapshot.Bytes { return snapshot.Bytes(i%2) * 20 * snapshot.MiB }), dashes) {
		t.Error("a slope on uneven ground")
	}
	before, _, _ := strings.Cut(draw(func(i int) snapshot.Bytes { return snapshot.Bytes(i%2) * snapshot.MiB }), dashes)
	if path := before[strings.LastIndex(before, " d="):]; strings.Count(path, "L") != 1 {
		t.Errorf("a slope is bent on ground that moves a little: %s", path)
	}
}

func TestSheetsShowWhatMovesFirst(t *testing.T) {
	r := noLeak(t)
	stays, moves := &r.Rows[0], &r.Rows[1]
	for i := range r.Rows {
		clear(r.Series.Site(&r.Rows[i]).Bytes)
	}
	for i := range r.Series.Marks {
		r.Series.Site(stays).Bytes[i] = snapshot.GiB
		r.Series.Site(moves).Bytes[i] = snapshot.Bytes(i%2) * snapshot.KiB
	}
	r.Findings = nil
	stays.After, moves.After = diff.Tally{Blocks: 1, Bytes: snapshot.GiB}, diff.Tally{Blocks: 1, Bytes: snapshot.KiB}
	panels, _ := sitePanels(r)
	if len(panels) != 2 || panels[0].y[1] != 1024 || !strings.HasPrefix(panels[1].note, "unchanged: 1.00 GiB") {
		t.Errorf("the panels are %+v", panels)
	}
}

// TestPanelsOfOnePlaceAreToldApart has operations whose lines alone differ, beyond the room.
func TestPanelsOfOnePlaceAreToldApart(t *testing.T) {
	titles := make(map[string]bool)
	for _, line := range []string{"209", "210", "211"} {
		p := panel{title: "leak_loss.py:14", from: "→ LayerNorm.__init__ (normalization.py:" + line + ")"}
		p.fit(200)
		text := p.title + " " + p.from
		titles[text] = true
		if !strings.HasSuffix(text, line+")") || panelTitle.Width(p.title+" ")+panelFrom.Width(p.from) > 200 {
			t.Errorf("%q is cut, or too wide", text)
		}
	}
	if len(titles) != 3 {
		t.Errorf("the titles are %v", titles)
	}
}
