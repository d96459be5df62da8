package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

func TestCallsTellShortNamesApart(t *testing.T) {
	call := func(file string, line int) snapshot.Frame {
		return snapshot.Frame{Function: "f", File: "/home/me/" + file, Line: line}
	}
	at := call("fpn.py", 88)
	rows := []*diff.Row{
		{Frames: []snapshot.Frame{at, call("a.py", 5), call("train.py", 218)}},
		{Frames: []snapshot.Frame{at, call("a.py", 5), call("train.py", 230)}},
		{Frames: []snapshot.Frame{call("head.py", 1), call("train.py", 230)}},
	}
	var names []string
	for _, row := range rows {
		names = append(names, shortPlace(row, 0))
	}
	if d := cmp.Diff([]string{"fpn.py:88", "fpn.py:88", "head.py:1"}, names); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"← train.py:218", "← train.py:230", ""}, callsApart(names, rows)); d != "" {
		t.Error(d)
	}
	library := call("lib/python3/site-packages/jax/pjit.py", 1190)
	below := []*diff.Row{
		{Frames: []snapshot.Frame{library, at, call("train.py", 218)}},
		{Frames: []snapshot.Frame{at, call("train.py", 218)}},
	}
	if d := cmp.Diff([]string{"→ f (pjit.py:1190)", ""}, callsApart([]string{"fpn.py:88", "fpn.py:88"}, below)); d != "" {
		t.Errorf("a call below the line: %s", d)
	}
	torch := func(name string, line int) snapshot.Frame {
		return snapshot.Frame{Function: name, File: "/lib/python3/site-packages/torch/f.py", Line: line}
	}
	// As a table names them, which tells the operation first.
	rows = []*diff.Row{{Frames: []snapshot.Frame{torch("empty", 1), torch("linear", 2), at}}, {Frames: []snapshot.Frame{torch("copy", 3), torch("conv", 2), at}}}
	if d := cmp.Diff([]string{"→ empty (f.py:1)", "→ copy (f.py:3)"}, callsApart([]string{"fpn.py:88", "fpn.py:88"}, rows)); d != "" {
		t.Errorf("operations below the line: %s", d)
	}
}

func TestAPlaceInABinaryIsNotTheBinary(t *testing.T) {
	row := &diff.Row{Frames: []snapshot.Frame{{Function: "app+0x10", File: "/home/me/app", Line: -1}}}
	if got := shortPlace(row, 0); got != "app+0x10" {
		t.Errorf("got %q", got)
	}
}

func TestRowsOfOneTextAreToldApart(t *testing.T) {
	call := func(file string, line int) snapshot.Frame {
		return snapshot.Frame{Function: "f", File: file, Line: line}
	}
	lib := func(name string) snapshot.Frame {
		return snapshot.Frame{Function: name, File: "/usr/lib/python3/site-packages/torch/nn/functional.py", Line: 9}
	}
	binary := func(place string) snapshot.Frame {
		return snapshot.Frame{Function: place, File: "/home/me/app", Line: -1}
	}
	at := call("fpn.py", 88)
	for _, c := range []struct {
		name string
		rows [][]snapshot.Frame
		want []string
	}{
		{"rows that differ stay", [][]snapshot.Frame{{at}, {call("b.py", 1)}}, []string{"fpn.py:88 in f", "b.py:1 in f"}},
		{"by the nearest caller that differs", [][]snapshot.Frame{
			{at, call("a.py", 5), call("train.py", 218)}, {at, call("a.py", 5), call("train.py", 230)}},
			[]string{"fpn.py:88 in f ← called from train.py:218", "fpn.py:88 in f ← called from train.py:230"}},
		{"libraries between are passed over", [][]snapshot.Frame{
			{at, lib("call"), call("train.py", 218)}, {at, lib("other"), lib("call"), call("train.py", 230)}},
			[]string{"fpn.py:88 in f ← called from train.py:218", "fpn.py:88 in f ← called from train.py:230"}},
		{"one that nobody calls keeps its text", [][]snapshot.Frame{{at}, {at, call("train.py", 218)}},
			[]string{"fpn.py:88 in f", "fpn.py:88 in f ← called from train.py:218"}},
		{"three need two callers", [][]snapshot.Frame{
			{at, call("a.py", 1), call("t.py", 1)}, {at, call("a.py", 1), call("t.py", 2)}, {at, call("b.py", 1)}},
			[]string{"fpn.py:88 in f ← called from a.py:1 ← called from t.py:1", "fpn.py:88 in f ← called from a.py:1 ← called from t.py:2", "fpn.py:88 in f ← called from b.py:1"}},
		{"by the call below where the callers are the same", [][]snapshot.Frame{
			{lib("empty"), lib("linear"), at}, {lib("empty"), lib("conv"), at}},
			[]string{"fpn.py:88 in f → empty (functional.py:9) → linear (functional.py:9)", "fpn.py:88 in f → empty (functional.py:9) → conv (functional.py:9)"}},
		{"by a library where nothing else differs", [][]snapshot.Frame{{at, lib("call")}, {at, lib("backward")}},
			[]string{"fpn.py:88 in f ← called from call (functional.py:9)", "fpn.py:88 in f ← called from backward (functional.py:9)"}},
		{"by places in a binary, where no lines are known", [][]snapshot.Frame{{binary("app+0x10"), binary("app+0x20")}, {binary("app+0x10"), binary("app+0x30")}},
			[]string{"/home/me/app in app+0x10 ← called from app+0x20", "/home/me/app in app+0x10 ← called from app+0x30"}},
		{"equal rows stay equal", [][]snapshot.Frame{{at}, {at}}, []string{"fpn.py:88 in f", "fpn.py:88 in f"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows := make([]where, len(c.rows))
			for i, frames := range c.rows {
				rows[i] = whereOf(frames, "")
			}
			got := placesApart(rows)
			for i := range got {
				got[i] = strings.ReplaceAll(got[i], noBreak, " ")
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
	devices := placesApart([]where{{frames: []snapshot.Frame{at}, device: "cuda:0"}, {frames: []snapshot.Frame{at}, device: "cuda:1"}})
	if devices[0] == devices[1] || !strings.HasPrefix(devices[0], "cuda:0 ") {
		t.Errorf("on two devices: %q", devices)
	}
}

// TestASiteHasOnePlaceOnAPage: a finding may be named by a call that its stacks share, and every
// table and picture names its sites so.
func TestASiteHasOnePlaceOnAPage(t *testing.T) {
	r := pyramidResult(t)
	f := &r.Findings[0]
	f.Headline = slices.IndexFunc(f.Rows[0].Frames, func(f snapshot.Frame) bool { return f.Function == "workload.RunPyramid" })
	const named, inner = "feature_pyramid.go:31", "feature_pyramid.go:88"
	flame := string(rendered(t, func(b *bytes.Buffer) error { return Flame(b, GrowthProfile(r), FlameOptions{}) }))
	if !strings.Contains(flame, "leak: workload.RunPyramid (feature_pyramid.go:31)") || strings.Contains(flame, "leak: workload.(*Pyramid)") {
		t.Error("the flamegraph marks another line than the finding's")
	}
	for _, row := range changedRows(r) {
		if row.Verdict == string(diff.Leak) && !strings.HasSuffix(row.Where, named) {
			t.Errorf("JSON names the site by %s", row.Where)
		}
	}
	c, err := newChart(r, PlotOptions{Stack: StackSites}, maxPoints)
	if err != nil || !slices.ContainsFunc(c.bands, func(b band) bool { return strings.HasPrefix(b.name, named) }) || slices.ContainsFunc(c.bands, func(b band) bool { return strings.Contains(b.name, inner) }) {
		t.Errorf("the bands are %+v, %v", c.bands, err)
	}
}
