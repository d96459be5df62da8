package diff

import (
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

func TestTheKernelsMemoryForTheCommandGrows(t *testing.T) {
	for _, c := range []struct {
		name   string
		others int64
		kernel func(look int) snapshot.Bytes
		grows  bool
	}{
		{"each look has more", 0, func(look int) snapshot.Bytes { return snapshot.Bytes(look) << 20 }, true},
		{"of a group that others are in", 1, func(look int) snapshot.Bytes { return snapshot.Bytes(look) << 20 }, false},
		{"none", 0, func(int) snapshot.Bytes { return 9 << 20 }, false},
		{"not known", 0, func(int) snapshot.Bytes { return snapshot.Unknown }, false},
	} {
		tree := treeOf(lifetime{"server", 0, 30, func(float64) float64 { return 50 }})
		for i, p := range tree.Processes[0].Points {
			tree.Host = append(tree.Host, snapshot.HostPoint{Time: p.Time, Group: snapshot.Group{Others: c.others, Kernel: c.kernel(i)}})
		}
		r, err := Analyze(flatRun(tree), ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		got := r.Unaccounted()
		if c.grows != (len(got) == 1) {
			t.Errorf("%s: %v", c.name, got)
			continue
		}
		if c.grows && (!strings.HasPrefix(got[0].String(), "the kernel's memory for the command grew steadily by 2.00 MiB a second") || got[0].Clause() != "the kernel's memory for the command grows, +2.00 MiB/s: it belongs to no process") {
			t.Errorf("%s; %s", got[0], got[0].Clause())
		}
	}
}
