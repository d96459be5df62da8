package gate

import "testing"

func TestRanksThatSayTheSameAreSaidOnce(t *testing.T) {
	of := func(n int) (ranks []Rank) {
		for i := range n {
			said := "no leak"
			if i == 2 {
				said = "1 leak"
			}
			ranks = append(ranks, Rank{Number: i, Said: said})
		}
		return ranks
	}
	headline := func(r *Rank) []string { return []string{r.Said} }
	if few := lines(of(apart), headline); len(few) != apart || few[2] != "rank 2: 1 leak" {
		t.Errorf("%d lines of %d ranks", len(few), apart)
	}
	many := lines(of(1000), headline)
	if len(many) != 2 || many[0] != "ranks 0, 1 and 3 to 999: no leak" || many[1] != "rank 2: 1 leak" {
		t.Errorf("%d lines: %q", len(many), many)
	}
	if got := sentence(of(1000)); got != "ranks 0, 1 and 3 to 999: no leak; rank 2: 1 leak" {
		t.Error(got)
	}
	noted := of(3)
	for i := range noted {
		noted[i].unread = []string{"a run of 2 machines"}
	}
	if notes := lines(noted, (*Rank).more); len(notes) != 1 || notes[0] != "ranks 0 to 2: note: a run of 2 machines" {
		t.Errorf("%q", notes)
	}
	if got := sentence(of(2)); got != "no leak; no leak" {
		t.Error(got)
	}
}
