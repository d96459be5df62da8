package report

import "github.com/memdiag/memdiag/diff"

// story is the content of a comparison that all reports share. Text, Markdown and page lay it out.
type story struct {
	leaks    []said          // shown in full, first those of the process whose leaks end the run first
	grown    []*diff.Reserve // growth that no stack explains
	maybe    []said          // inconclusive, shown in full
	listed   []*diff.Finding // all others
	title    string          // title of listed
	accounts []account       // groups that sum to total
	total    diff.Tally
	reserves []*diff.Reserve // reserved memory that grows alone
	least    string          // the smallest leak that could have been shown; "" if unknown
}

// said is a finding with its result.
type said struct {
	in *diff.Result
	*diff.Finding
}

// storyOf shows leaks in full, but only a few inconclusive findings: with two snapshots without births, every site that grew is one. If
// the snapshots are of different processes, growth has no meaning, and all sites are listed.
func storyOf(r *diff.Result, o TextOptions) *story {
	s := &story{grown: r.Unaccounted(), title: "What else grew", accounts: accounts(r), total: r.Growth(), reserves: deviceReserves(r), least: leastText(r)}
	leaks, maybe := withVerdict(r, diff.Leak), withVerdict(r, diff.Inconclusive)
	topLeaks, topMaybe := o.top(len(leaks)), o.top(len(maybe))
	for _, of := range r.Drained() {
		shown := withVerdict(of, diff.Leak)
		if of == r {
			shown = shown[:topLeaks]
		}
		s.leaks = append(s.leaks, saidOf(of, shown)...)
	}
	if !r.Comparable {
		s.title, s.listed = "More in the last snapshot than in the first", maybe
		return s
	}
	if !o.All {
		topMaybe = min(topMaybe, 3)
	}
	s.maybe = saidOf(r, maybe[:topMaybe])
	for _, rest := range [][]*diff.Finding{leaks[topLeaks:], maybe[topMaybe:], withVerdict(r, diff.Bounded), withVerdict(r, diff.Clean)} {
		s.listed = append(s.listed, rest...)
	}
	return s
}

func saidOf(r *diff.Result, findings []*diff.Finding) (out []said) {
	for _, f := range findings {
		out = append(out, said{r, f})
	}
	return out
}

// account is a group of rows with its share of the growth.
type account struct {
	name   string
	sites  int
	growth diff.Tally
}

// accounts divides all rows into groups that do not overlap. Groups without rows are left out.
func accounts(r *diff.Result) []account {
	all := []account{{name: string(diff.Leak)}, {name: string(diff.Inconclusive)}, {name: string(diff.Bounded)},
		{name: string(diff.Clean)}, {name: "grew, not judged by this rule"}, {name: "shrank"}, {name: "unchanged"}}
	judged := verdictsOf(r)
	for i := range r.Rows {
		row := &r.Rows[i]
		g := row.Growth()
		at := 6
		switch verdict, ok := judged[row]; {
		case ok:
			for at = 0; all[at].name != string(verdict); at++ {
			}
		case g.Bytes > 0 || g.Bytes == 0 && g.Blocks > 0:
			at = 4
		case g != diff.Tally{}:
			at = 5
		}
		all[at].sites++
		all[at].growth = plus(all[at].growth, g)
	}
	var out []account
	for _, a := range all {
		if a.sites > 0 {
			out = append(out, a)
		}
	}
	return out
}
