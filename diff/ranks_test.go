package diff

import (
	"slices"
	"strings"
	"testing"
)

func TestRanksShowTheirLeaksTogether(t *testing.T) {
	weights := site{stack: "init:1 main:2"}
	every := site{stack: "[all_gather:1] keep:8 step:20", every: 1, size: 1024}
	alone := site{stack: "log:9 step:21", every: 1, size: 4096}
	judged := func(rank int, steps int64, p program) *Result {
		run := p.run(steps, 10)
		for _, s := range run.Snapshots {
			s.Rank = rank
			s.Devices[0].Index = rank
		}
		r, err := Analyze(run, ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := JoinRanks([]*Result{
		judged(2, 100, program{weights, every}), judged(0, 100, program{weights, every}),
		judged(1, 100, program{weights, every, alone}), judged(3, 60, program{weights, every}),
	})
	if r.Last.Rank != 1 || !slices.Equal(r.Across.Ranks, []int{0, 1, 2, 3}) {
		t.Errorf("rank %d of %v; want the one that leaks most, 1", r.Last.Rank, r.Across.Ranks)
	}
	if l := r.Across.Leaks; len(l) != 2 || !slices.Equal(l[0].On, []int{1}) || l[0].Rank != 1 || !slices.Equal(l[1].On, []int{0, 1, 2, 3}) {
		t.Errorf("got %+v; want one leak on rank 1 and one on all", l)
	}
	if n := r.Across.Notes; len(n) != 1 || !strings.HasPrefix(n[0], "rank 3 is behind: its last snapshot is of step 60") {
		t.Errorf("notes %q", n)
	}
	clean := JoinRanks([]*Result{judged(1, 100, program{weights}), judged(0, 100, program{weights})})
	if clean.Last.Rank != 0 || len(clean.Across.Leaks) != 0 || len(clean.Across.Notes) != 0 {
		t.Errorf("got rank %d, %+v", clean.Last.Rank, clean.Across)
	}
}
