package report

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

// inWorker is a run without a leak of its own, of which a loader's worker leaks.
func inWorker(t *testing.T) *diff.Result {
	t.Helper()
	r, child := analyzed(t, empty()), pyramidResult(t)
	c := &diff.Child{Role: "loader worker 1", PID: 7, Alike: 1, Of: 1, Result: child}
	for i := range child.Findings {
		child.Findings[i].Child = c
	}
	r.Children = []*diff.Child{c}
	return r
}

// TestALeakOfAnotherProcessIsDrawnAndListed: flamegraphs and tables had the recorded process alone.
func TestALeakOfAnotherProcessIsDrawnAndListed(t *testing.T) {
	r := inWorker(t)
	grown := r.Children[0].Result.Growth().Bytes
	for name, p := range map[string]*Profile{"growth": GrowthProfile(r), "rate": RateProfile(r)} {
		var sum snapshot.Bytes
		for i := range p.Samples {
			s := &p.Samples[i]
			sum += s.Value().Bytes
			if last := s.Frames[len(s.Frames)-1].Function; last != "loader worker 1" {
				t.Errorf("%s: a stack begins with %q", name, last)
			}
		}
		if sum <= 0 || name == "growth" && sum != grown {
			t.Errorf("%s: the samples are %s, and the worker gained %s", name, sum, grown)
		}
	}
	if page := string(rendered(t, func(b *bytes.Buffer) error { return Page(b, r, About{}) })); !strings.Contains(page, "<dt>live memory of the recorded process</dt>") {
		t.Error("the page's live memory is nobody's")
	}
	lines, err := csv.NewReader(bytes.NewReader(rendered(t, func(b *bytes.Buffer) error { return CSV(b, r) }))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	last := len(lines[0]) - 1
	if len(lines) < 2 || lines[0][last] != "process" || lines[1][last] != "loader worker 1" || lines[1][3] != "leak" {
		t.Errorf("%q", lines)
	}
}

// TestAPageOfRanksDoesNotContradictItsTitle: below the leak of a rank's worker stood that no rank leaks.
func TestAPageOfRanksDoesNotContradictItsTitle(t *testing.T) {
	r := inWorker(t)
	r.Across = &diff.Across{Ranks: []int{0, 1}}
	if text := lead(r); strings.Contains(text, "None") || !strings.HasSuffix(text, " Processes beside them leak.") {
		t.Error(text)
	}
}

// TestTheSentenceNamesTheMachineOfAProcess: of a run of several it was unknown on which one the worker leaks.
func TestTheSentenceNamesTheMachineOfAProcess(t *testing.T) {
	r := inWorker(t)
	r.Children[0].Machine, r.Children[0].Alike, r.Children[0].Of = "node-b", 2, 4
	for _, text := range []string{Headline(r), GateHeadline(r.Children[0].Result)} {
		if !strings.Contains(text, "allocated in loader worker 1 on node-b (2 of 4 such processes) at ") {
			t.Error(text)
		}
	}
}

// TestTheSentenceNamesOtherProcessesThatLeak: beside a leak of the recorded process nothing was said of them.
func TestTheSentenceNamesOtherProcessesThatLeak(t *testing.T) {
	r := pyramidResult(t)
	alone := Headline(r)
	gate := GateHeadline(r)
	r.Children = inWorker(t).Children
	if got := GateHeadline(r); got != gate {
		t.Errorf("the gate says %q", got)
	}
	if got := Headline(r); got != alone+"; more leaks in loader worker 1" {
		t.Errorf("%q", got)
	}
}

// TestTheProcessThatLeaksMostComesFirst: the recorded one did, however little it leaked.
func TestTheProcessThatLeaksMostComesFirst(t *testing.T) {
	r := pyramidResult(t)
	r.Children = inWorker(t).Children
	more := r.Children[0].Result
	for i := range more.Findings {
		more.Findings[i].Rate.Bytes.Value *= 2
	}
	want := Headline(more) + "; more leaks in the recorded process"
	if got := Headline(r); got != want || !strings.Contains(got, "in loader worker 1 ") {
		t.Errorf("%q, not %q", got, want)
	}
	text := string(rendered(t, func(b *bytes.Buffer) error { return Text(b, r, TextOptions{}) }))
	if worker, own := strings.Index(text, "detected in loader worker 1:"), strings.Index(text, "detected:"); worker < 0 || own < worker {
		t.Errorf("the worker's leak is at %d, and the smaller one at %d", worker, own)
	}
}

func TestPathsOfAnotherProcessAreRelative(t *testing.T) {
	r := inWorker(t)
	row := r.Children[0].Result.Findings[0].Rows[0]
	row.Frames[0].File = "/work/train.py"
	Folder{"/work"}.Results(r)
	if got := row.Frames[0].File; !strings.HasPrefix(got, "train.py") {
		t.Errorf("%q", got)
	}
}

// TestALeakOfAnotherProcessHasAChart: the page drew the devices of the recorded process and all processes by role, and the site nowhere.
func TestALeakOfAnotherProcessHasAChart(t *testing.T) {
	r := inWorker(t)
	child := r.Children[0].Result
	for i := range child.Findings {
		child.Findings[i].Rate.Unit = diff.Batch
	}
	views, data := chartViews(r)
	if len(views) == 0 || !strings.Contains(views[0].About, " in loader worker 1 · batches 0 to ") || views[0].Axis != "batch" {
		t.Fatalf("%+v", views)
	}
	leak := data[0].Bands[len(data[0].Bands)-1]
	if !leak.Leak || !strings.HasPrefix(leak.Name, "feature_pyramid.go:88") {
		t.Errorf("the site is not drawn: %+v", leak)
	}
	if with, _ := chartViews(pyramidResult(t)); strings.Contains(with[0].About, " in ") {
		t.Errorf("%q", with[0].About)
	}
}

func TestRatesByTheBatchHaveAPlural(t *testing.T) {
	rare := trend.Slope{Value: 0.004, Low: 0.004, High: 0.004, N: 9}
	r := diff.Rate{Unit: diff.Batch, Blocks: rare, Bytes: rare}
	if got := bytesRate(r) + ", " + blocksRate(r, "block"); got != "+1 B every 250 batches, +1 block every 250 batches" {
		t.Error(got)
	}
}
