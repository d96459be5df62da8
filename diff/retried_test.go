package diff

import (
	"slices"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// TestAnAllocatorThatTriedAgainIsSaid: from when on, and what was before the run's first snapshot is not its own.
func TestAnAllocatorThatTriedAgainIsSaid(t *testing.T) {
	said := func(retries, failed [4]int64) []string {
		run := &snapshot.Run{}
		for i := range retries {
			s := build(int64(10*i), grown("f", 3, 512, 0, 1)...)
			s.Devices[0].Kind, s.Devices[0].Retries, s.Devices[0].OutOfMemory = snapshot.CUDA, retries[i], failed[i]
			run.Snapshots = append(run.Snapshots, s)
		}
		r, err := Analyze(run, ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(r.Notes, func(n string) bool { return !strings.Contains(n, "tried again") })
	}
	for _, c := range []struct {
		retries, failed [4]int64
		want            []string
	}{
		{[4]int64{}, [4]int64{}, nil},
		{[4]int64{2, 2, 2, 2}, [4]int64{1, 1, 1, 1}, nil},
		{[4]int64{2, 2, 3, 3}, [4]int64{}, []string{"cuda:0 was nearly full: its allocator found no memory, emptied its cache and tried again once after step 10"}},
		{[4]int64{0, 3, 5, 9}, [4]int64{0, 0, 0, 2}, []string{"cuda:0 was nearly full: its allocator found no memory, emptied its cache and tried again 9 times after step 0, and failed 2 times"}},
	} {
		if got := said(c.retries, c.failed); !slices.Equal(got, c.want) && len(got)+len(c.want) > 0 {
			t.Errorf("%v, %v: %q", c.retries, c.failed, got)
		}
	}
}
