package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/memdiag/memdiag/bench/corpus"
	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/engine/workload"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/files"
	"github.com/memdiag/memdiag/snapshot/heavytest"
)

// firstLeaks are the sites of one snapshot that its ages call a leak.
func firstLeaks(s *snapshot.Snapshot) []diff.SiteAges {
	return slices.DeleteFunc(diff.Inspect(s).Sites, func(a diff.SiteAges) bool { return a.Verdict != diff.Leak })
}

// TestOneRealSnapshotRaisesNoAlarm: what people have published of PyTorch is of one
// or two steps each, or tells no births, and none of it is known to leak.
func TestOneRealSnapshotRaisesNoAlarm(t *testing.T) {
	folder := shared(t, "data/torch")
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	judged := 0
	for _, e := range entries {
		s, err := new(files.Opener).Open(filepath.Join(folder, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		ages := diff.Inspect(s)
		if ages.Why == "" {
			judged++
		}
		for _, site := range ages.Sites {
			if site.Verdict == diff.Leak {
				t.Errorf("%s: %v at %v", e.Name(), site.Reasons, s.Stacks.Frames(site.Site.Stack))
			}
		}
	}
	if len(entries) < 15 || judged == 0 {
		t.Errorf("%d files, of which %d tell enough to be judged", len(entries), judged)
	}
}

// sameLines fails where one snapshot names another line than the comparison of all does
// for the same stack.
func sameLines(t *testing.T, r *corpus.Run, whole *snapshot.Run, last *snapshot.Snapshot) {
	result, err := diff.Analyze(whole, diff.ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	named := make(map[snapshot.Hash]snapshot.Frame)
	for i := range result.Findings {
		f := &result.Findings[i]
		for _, row := range f.Rows {
			if f.Verdict == diff.Leak && f.Headline >= 0 {
				named[row.Hash] = f.Rows[0].Frames[f.Headline]
			}
		}
	}
	ages := diff.Inspect(last)
	for i := range ages.Findings {
		f := &ages.Findings[i]
		for _, row := range f.Rows {
			if want, ok := named[row.Hash]; ok && (f.Headline < 0 || f.Rows[0].Frames[f.Headline] != want) {
				t.Errorf("%s, seed %d: one snapshot names frame %d of %v, the comparison %v", r.Workload.ID, r.Seed, f.Headline, f.Rows[0].Frames, want)
			}
		}
	}
}

// TestOneSnapshotOfEachWorkload says what one snapshot, the last, cannot see: one
// block that is replaced by larger ones, a leak that began late, a backlog whose
// oldest are used up, and a store that has not reached its bound.
func TestOneSnapshotOfEachWorkload(t *testing.T) {
	heavytest.Skip(t, "a training of each workload")
	if heavytest.Race {
		t.Skip("every workload is run, which takes long under the race detector")
	}
	t.Parallel()
	missed, alarms := []string{"L25", "L31", "L32", "L36"}, []string{"D06"}
	runs, err := corpus.Runs(workload.All(), corpus.Plan{Seeds: 1, Views: []corpus.View{corpus.Snapshots(3)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		whole, err := r.Record(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		last := whole.Snapshots[len(whole.Snapshots)-1]
		leaks := firstLeaks(last)
		sameLines(t, r, whole, last)
		found := slices.ContainsFunc(leaks, func(a diff.SiteAges) bool { return slices.ContainsFunc(last.Stacks.Frames(a.Site.Stack), r.IsGuilty) })
		id := r.Workload.ID
		switch {
		case r.Leaks() && !found && !slices.Contains(missed, id):
			t.Errorf("%s: the leak is not seen", id)
		case !r.Leaks() && len(leaks) > 0 && !slices.Contains(alarms, id):
			t.Errorf("%s, repaired %t: %v at %v", id, r.Fixed, leaks[0].Reasons, last.Stacks.Frames(leaks[0].Site.Stack))
		case r.Leaks() && found && slices.Contains(missed, id), !r.Leaks() && len(leaks) == 0 && slices.Contains(alarms, id):
			t.Errorf("%s is told right by now: take it off the list", id)
		}
	}
}
