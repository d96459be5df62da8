package record_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// TestRanksThatBeginAtOnceShareAFolder has goroutines in the place of processes.
func TestRanksThatBeginAtOnceShareAFolder(t *testing.T) {
	dir := t.TempDir()
	var done sync.WaitGroup
	for rank := range 16 {
		done.Go(func() {
			w, err := rundir.Create(dir, snapshot.Info{Rank: &rank})
			if err == nil {
				err = w.Finish(rank, time.Now())
			}
			if err != nil {
				t.Errorf("rank %d: %v", rank, err)
			}
		})
	}
	done.Wait()
	read := func(name string) (i snapshot.Info) {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = json.Unmarshal(b, &i)
		}
		if err != nil || i.Rank == nil || i.ExitCode == nil {
			t.Fatalf("%s: %v, %+v", name, err, i)
		}
		return i
	}
	first := *read(rundir.InfoName).Rank
	for rank := range 16 {
		name := rundir.RankInfoName(rank)
		if rank == first {
			name = rundir.InfoName
		}
		if i := read(name); *i.Rank != rank || *i.ExitCode != rank {
			t.Errorf("%s: %+v", name, i)
		}
		_, err := rundir.Create(dir, snapshot.Info{Rank: &rank})
		if _, ok := errors.AsType[*rundir.NotEmptyError](err); !ok {
			t.Errorf("rank %d again: %v", rank, err)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 16 {
		t.Errorf("%v, files: %q", err, files)
	}
}
