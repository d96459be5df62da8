package main

import "testing"

func TestRanksThatSayTheSameAreSaidOnce(t *testing.T) {
	of := func(n int) (ranks []judged) {
		for i := range n {
			said := "no leak"
			if i == 2 {
				said = "1 leak"
			}
			ranks = append(ranks, judged{rank: i, said: said})
		}
		return ranks
	}
	headline := func(j *judged) []string { return []string{j.said} }
	if few := sayings(of(apart), headline); len(few) != apart || few[2].line(apart) != "rank 2: 1 leak" {
		t.Errorf("%d lines of %d ranks", len(few), apart)
	}
	many := sayings(of(1000), headline)
	if len(many) != 2 || many[0].line(1000) != "ranks 0, 1 and 3 to 999: no leak" || many[1].line(1000) != "rank 2: 1 leak" {
		t.Errorf("%d lines: %q", len(many), many[0].line(1000))
	}
	if got := sentence(of(1000)); got != "ranks 0, 1 and 3 to 999: no leak; rank 2: 1 leak" {
		t.Error(got)
	}
	if got := sentence(of(2)); got != "no leak; no leak" {
		t.Error(got)
	}
}
