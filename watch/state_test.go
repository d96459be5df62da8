package watch

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// TestALateWatchLooksBackForALimitedTime: each snapshot takes 100 ms here, so that all 32 moments would take a minute.
func TestALateWatchLooksBackForALimitedTime(t *testing.T) {
	const all, first = 34, 3
	const each = 100 * time.Millisecond
	var moments []snapshot.Mark
	for have := first; have < all; have++ {
		moments = append(moments, snapshot.Mark{Step: int64(have)})
	}
	spent, looks, last, snapshots := time.Duration(0), 0, int64(0), 0
	for len(moments) > 0 {
		last = moments[0].Step
		took := time.Duration(last) * each
		spent, looks, snapshots = spent+took, looks+1, snapshots+int(last)
		moments = affordable(moments[1:], backTime-spent, spent, snapshots, (int(last)+all)/2)
	}
	if spent < backTime/2 || spent > backTime || looks < 4 || last != all-1 {
		t.Errorf("%d looks took %v, the last one at %d", looks, spent, last)
	}
	if kept := affordable(make([]snapshot.Mark, 31), backTime, time.Millisecond, 3, 18); len(kept) != 31 {
		t.Errorf("of quick looks %d are left", len(kept))
	}
}

// TestAGlanceSeesWhatChanged, and is rare where it takes long.
func TestAGlanceSeesWhatChanged(t *testing.T) {
	dir := t.TempDir()
	glance := func() uint64 {
		s, err := stateOf(dir)
		if err != nil {
			t.Fatal(err)
		}
		return s.snapshots
	}
	seen := map[uint64]bool{glance(): true}
	name := filepath.Join(dir, "a.pickle")
	for i, change := range []func() error{
		func() error { return os.WriteFile(name, nil, 0o600) },
		func() error { return os.WriteFile(name, []byte("a"), 0o600) },
		func() error { return os.Chtimes(name, time.Unix(1, 0), time.Unix(1, 0)) },
		func() error { return os.Rename(name, filepath.Join(dir, "b.pickle")) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		now := glance()
		if seen[now] || glance() != now {
			t.Errorf("change %d", i)
		}
		seen[now] = true
	}
	f := Follower{Every: time.Second}
	for took, want := range map[time.Duration]time.Duration{time.Millisecond: time.Second, time.Second: 50 * time.Second, time.Hour: 4 * time.Minute} {
		if got := f.untilGlance(took); got != want {
			t.Errorf("after one of %v: %v", took, got)
		}
	}
}
