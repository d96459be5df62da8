package diff

import (
	"slices"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

func TestAGraphIsOneLeakWhereOwnersAreKnown(t *testing.T) {
	const (
		activation = 64 * snapshot.KiB
		user       = snapshot.OwnedByUser
		tape       = snapshot.OwnedByTape
	)
	weights := site{stack: "init:1 main:2", owners: user}
	for _, c := range []struct {
		name    string
		program program
		want    []string
	}{
		{
			"a forward pass returns the value, and its caller keeps it",
			program{
				weights,
				{stack: "[linear:1] forward:7 step:9 main:5", every: 1, size: activation, owners: tape},
				{stack: "[relu:1] forward:8 step:9 main:5", every: 1, owners: user | tape, holder: "Chain.states"},
			},
			[]string{"step:9 x2"},
		}, {
			"two lists of values are two leaks",
			program{
				weights,
				{stack: "[relu:1] left:7 step:9 main:5", every: 1, owners: user | tape, holder: "Net.left"},
				{stack: "[relu:1] right:8 step:10 main:5", every: 1, owners: user | tape, holder: "Net.right"},
			},
			[]string{"left:7 x1", "right:8 x1"},
		}, {
			"what nothing refers to stays apart",
			program{
				weights, {stack: "batch:3 main:5"}, {stack: "batch:3 main:6"},
				{stack: "[relu:1] left:7 step:9 main:5", every: 1, owners: tape},
				{stack: "[relu:1] right:8 look:10 main:6", every: 1, owners: tape},
			},
			[]string{"left:7 x1", "right:8 x1"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.program.leaks(t); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
