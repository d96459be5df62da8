package baseline_test

import (
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/snapshot"
)

func TestLibraryLeaksPassWhereTheyAreKnown(t *testing.T) {
	const site = "/venv/lib/python3.12/site-packages/"
	train := snapshot.Frame{File: "/home/ann/train.py", Line: 20}
	dispatch := snapshot.Frame{File: site + "torch/distributed/tensor/_dispatch.py", Line: 400}
	below := snapshot.Frame{Function: "PyObject_Malloc", File: "/usr/lib/libpython3.so", Line: -1}
	masked := snapshot.Frame{File: site + "torch/masked/maskedtensor/core.py", Line: 30}
	for _, c := range []struct {
		name, producer string
		frames         []snapshot.Frame
		id             string
	}{
		{"in a version that leaks so", "PyTorch 2.10.0+cu128", []snapshot.Frame{dispatch, train}, "torch-dtensor-spec"},
		{"in a later one of those", "PyTorch 2.11.1", []snapshot.Frame{dispatch, train}, "torch-dtensor-spec"},
		{"below calls that are not Python's", "PyTorch 2.10.0", []snapshot.Frame{below, dispatch, train}, "torch-dtensor-spec"},
		{"from any version on", "PyTorch 1.13.1", []snapshot.Frame{masked, train}, "torch-masked-tensor"},
		{"not before the first that does", "PyTorch 2.9.1", []snapshot.Frame{dispatch, train}, ""},
		{"not where it is mended", "PyTorch 2.12.0", []snapshot.Frame{dispatch, train}, ""},
		{"not where it was mended long ago", "PyTorch 2.15.0+cu132", []snapshot.Frame{masked, train}, ""},
		{"not in a version that is not told", "PyTorch", []snapshot.Frame{dispatch, train}, ""},
		{"not in one that is no version", "PyTorch nightly", []snapshot.Frame{masked, train}, ""},
		{"not where the user's own code allocates", "PyTorch 2.10.0", []snapshot.Frame{train, dispatch}, ""},
		{"not in a file of the user's of that name", "PyTorch 2.10.0", []snapshot.Frame{{File: "/home/ann/torch/distributed/tensor/_dispatch.py", Line: 1}, train}, ""},
		{"not in another framework", "JAX 2.10.0", []snapshot.Frame{dispatch, train}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			result := &diff.Result{Last: &snapshot.Snapshot{Producer: c.producer}, Findings: []diff.Finding{leak(1, 1000, c.frames)}}
			ranks := []baseline.Ranked{{Rank: snapshot.NoRank, Result: result}}
			file := &baseline.File{}
			o := file.Judge(ranks, time.Time{})
			l := &o.Leaks[0]
			if l.Passes() != (c.id != "") || len(o.Failing()) != map[bool]int{true: 0, false: 1}[l.Passes()] {
				t.Errorf("it is %s", l.State)
			}
			if c.id == "" {
				return
			}
			if l.Library.ID != c.id || !strings.Contains(l.Why, c.id) || !strings.Contains(l.Why, "https://") {
				t.Errorf("it is taken for %s: %s", l.Library, l.Why)
			}
			if next := file.Update(o, func(*diff.Finding) string { return "" }); len(next.Known) != 0 {
				t.Error("an update writes it into the baseline")
			}
			if o.Strict(); len(o.Failing()) != 1 {
				t.Error("it passes where it is to fail")
			}
		})
	}
}

func TestLibraryLeaksAreToldInFull(t *testing.T) {
	if n := len(baseline.LibraryLeaks()); n < 15 {
		t.Errorf("there are %d", n)
	}
	for _, l := range baseline.LibraryLeaks() {
		if l.Below == "" {
			t.Errorf("%+v", l)
		}
		for _, r := range l.References {
			if !strings.HasPrefix(r, "https://github.com/") {
				t.Errorf("%s: %s", l.ID, r)
			}
		}
	}
}

func TestAListOfKnownLeaksIsRefusedWhereItIsWrong(t *testing.T) {
	entry := "version: 1\nleaks:\n  - {id: a, package: p, what: w, way-out: o, files: [p/], references: [r]}\n"
	if l, err := baseline.ParseLibraryLeaks([]byte(entry)); err != nil || len(l) != 1 || l[0].String() != "a of p and newer" {
		t.Errorf("%v, %v", l, err)
	}
	for _, c := range []struct{ name, old, new, want string }{
		{"no version", "version: 1", "version: 2", "version 1"},
		{"an unknown key", "id: a", "id: a, color: red", "color"},
		{"no id", "id: a, ", "", "its id"},
		{"no way out", "way-out: o, ", "", "its way-out"},
		{"no files", "files: [p/], ", "", "files"},
		{"no reference", ", references: [r]", "", "reference"},
		{"a version that is none", "id: a", "id: a, below: new", "versions"},
		{"twice", "references: [r]}\n", "references: [r]}\n  - {id: a, package: p, what: w, way-out: o, files: [p/], references: [r]}\n", "twice"},
		{"too deep", "[p/]", strings.Repeat("[", 100) + strings.Repeat("]", 100), "deep"},
	} {
		if _, err := baseline.ParseLibraryLeaks([]byte(strings.Replace(entry, c.old, c.new, 1))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestKnownLeaksAreNamedWithTheVersionThatMendsThem(t *testing.T) {
	const site = "/venv/lib/python3.12/site-packages/"
	train := snapshot.Frame{File: "/home/ann/train.py", Line: 20}
	dispatch := snapshot.Frame{File: site + "torch/distributed/tensor/_dispatch.py", Line: 400}
	trainer := snapshot.Frame{File: site + "torch/_dynamo/eval_frame.py", Line: 9}
	for _, c := range []struct {
		producer string
		frames   []snapshot.Frame
		want     string
	}{
		{"PyTorch 2.10.0", []snapshot.Frame{dispatch, train}, "torch 2.10.0 leaks here: DTensor's dispatch keeps a DTensorSpec for each parameter and step (fixed in 2.12); update PyTorch"},
		{"PyTorch 2.3.0", []snapshot.Frame{train, trainer}, "torch 2.3.0 may leak here: torch.compile keeps"},
		{"PyTorch 2.3.1", []snapshot.Frame{train, trainer}, ""},
		{"PyTorch 2.10.0", []snapshot.Frame{train}, ""},
	} {
		known := baseline.KnownIn(&diff.Result{Last: &snapshot.Snapshot{Producer: c.producer}, Findings: []diff.Finding{leak(1, 1000, c.frames)}}, baseline.LibraryLeaks())
		if got := strings.Join(known, "\n"); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %s", c.producer, got)
		}
	}
}

func TestAKnownLeakNamesTheCauseOfWhatHasNone(t *testing.T) {
	known, err := baseline.ParseLibraryLeaks([]byte("version: 1\nleaks:\n  - {id: a, package: torch, below: \"2.12\", what: w, way-out: o, uses: [torch/_dynamo/], references: [r], cause: host-only}\n"))
	if err != nil {
		t.Fatal(err)
	}
	train := snapshot.Frame{File: "/home/ann/train.py", Line: 20}
	dynamo := snapshot.Frame{File: "/venv/lib/python3.12/site-packages/torch/_dynamo/eval_frame.py", Line: 9}
	heap, held := leak(1, 1000, []snapshot.Frame{train}), leak(1, 1000, []snapshot.Frame{train})
	for _, f := range []*diff.Finding{&heap, &held} {
		f.Headline, f.Rows[0].Device.Kind = 0, snapshot.PythonHeap
	}
	heap.Holder = &snapshot.Holder{Kind: "object", Path: snapshot.Nameless}
	held.Holder = &snapshot.Holder{Kind: "list", Path: "main.kept"}
	unasked := heap
	unasked.Holder = nil
	other := leak(1, 1000, []snapshot.Frame{train, dynamo})
	other.Cause = cause.Find("graph-retained")
	r := &diff.Result{Last: &snapshot.Snapshot{Producer: "PyTorch 2.3.0"}, Findings: []diff.Finding{leak(1, 1000, []snapshot.Frame{train, dynamo}), heap, held, other, unasked}}
	baseline.NameCauses(r, known)
	for i, want := range []string{"host-only", "host-only", "", "graph-retained", ""} {
		if got := r.Findings[i].Cause; (got == nil) != (want == "") || got != nil && got.ID != want {
			t.Errorf("finding %d: %v, want %q", i, got, want)
		}
	}
	if _, err := baseline.ParseLibraryLeaks([]byte("version: 1\nleaks:\n  - {id: a, package: p, what: w, way-out: o, uses: [p/], references: [r], cause: none}\n")); err == nil || !strings.Contains(err.Error(), "explain") {
		t.Errorf("an unknown cause: %v", err)
	}
}
