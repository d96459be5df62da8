package series

import "testing"

// A light snapshot of a GPU has no births: its blocks are those of the snapshots around it that have them.
func TestABirthThatOneSnapshotLacksIsTheOthersUpToItsMoment(t *testing.T) {
	for _, c := range []struct {
		name                   string
		x, y, momentX, momentY int64
		want                   int
	}{
		{"both are known", 3, 4, 9, 9, -1},
		{"neither is", -1, -1, 9, 9, 0},
		{"one lacks it, and may have it", -1, 9, 9, 20, 0},
		{"it is after that one's moment", -1, 10, 9, 20, -1},
		{"the other way round", 10, -1, 20, 9, 1},
		{"no moment is known", 10, -1, 20, -1, 0},
	} {
		if got := compareBirths(c.x, c.y, -1, c.momentX, c.momentY, false); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
