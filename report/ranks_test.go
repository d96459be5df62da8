package report

import "testing"

func TestManyRanksAreNamedShortly(t *testing.T) {
	for _, c := range []struct {
		ranks []int
		want  string
	}{
		{[]int{3}, "rank 3"},
		{[]int{3, 4}, "ranks 3 and 4"},
		{[]int{0, 1, 2, 3}, "ranks 0 to 3"},
		{[]int{0, 1, 2, 5, 9}, "ranks 0 to 2, 5 and 9"},
		{[]int{0, 10, 20, 30, 40, 50, 60, 70, 80, 81, 82}, "ranks 0, 10, 20, 30, 40, 50, 60, 70 and 3 more"},
	} {
		if got := Ranks(c.ranks); got != c.want {
			t.Errorf("%v: %s, want %s", c.ranks, got, c.want)
		}
	}
}
