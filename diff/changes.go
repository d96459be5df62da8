package diff

import (
	"cmp"
	"slices"

	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// Change is what a call site holds in two snapshots, which may be of different runs.
type Change struct {
	Device        snapshot.Device
	Frames        []snapshot.Frame // innermost first; of the second snapshot, unless only the first has the site
	Label         string           // names a site without stack
	Before, After Tally
}

// Growth is how many more bytes the second snapshot holds.
func (c *Change) Growth() snapshot.Bytes { return c.After.Bytes - c.Before.Bytes }

// Changes compares what two snapshots hold, whether they are of one run or not, largest growth first. Two sites are
// the same if their scripts' lines match; of the rest, if the functions and files match, since lines move as a
// program is edited.
func Changes(a, b *snapshot.Snapshot) []Change {
	before, after := sitesOf(a), sitesOf(b)
	joinBy(before, after, Lines)
	joinBy(before, after, Functions)
	at := make(map[changeKey]int)
	var out []Change
	of := func(s *keyedSite) *Change {
		k := s.names[s.by]
		i, known := at[k]
		if !known {
			i = len(out)
			at[k] = i
			out = append(out, Change{Device: s.row.Device})
		}
		out[i].Frames, out[i].Label = s.row.Frames, s.row.Label
		return &out[i]
	}
	for i := range before {
		c := of(&before[i])
		c.Before = c.Before.Plus(before[i].row.After)
	}
	for i := range after {
		c := of(&after[i])
		c.After = c.After.Plus(after[i].row.After)
	}
	slices.SortStableFunc(out, func(x, y Change) int { return cmp.Compare(y.Growth(), x.Growth()) })
	return out
}

// joinBy gives the sites that no stronger level has joined the names of a level, if both snapshots have them.
func joinBy(before, after []keyedSite, level Match) {
	const first, second = 1, 2
	in := make(map[changeKey]int)
	for i, sites := range [][]keyedSite{before, after} {
		for _, s := range sites {
			if s.by == Exact {
				in[s.names[level]] |= []int{first, second}[i]
			}
		}
	}
	for _, sites := range [][]keyedSite{before, after} {
		for i := range sites {
			if s := &sites[i]; s.by == Exact && in[s.names[level]] == first|second {
				s.by = level
			}
		}
	}
}

// changeKey identifies a site in both snapshots, at a level.
type changeKey struct {
	device series.DeviceID
	level  Match
	stack  snapshot.Hash
}

// keyedSite is a site of one snapshot, its names by level, and the level that joins it with a site of the other
// snapshot: Exact for none.
type keyedSite struct {
	row   *Row
	names map[Match]changeKey
	by    Match
}

func sitesOf(s *snapshot.Snapshot) []keyedSite {
	rows := series.Pair(&snapshot.Snapshot{Stacks: snapshot.NewStacks(), Rank: s.Rank}, s)
	keys := newKeyer(rows)
	out := make([]keyedSite, len(rows))
	for i := range rows {
		row := &rows[i]
		out[i] = keyedSite{row: row, names: make(map[Match]changeKey), by: Exact}
		for _, level := range []Match{Exact, Lines, Functions} {
			name := changeKey{row.Key.Device, Exact, row.Hash}
			if stack, ok := keys.key(row, level); ok {
				name = changeKey{row.Key.Device, level, stack}
			}
			out[i].names[level] = name
		}
	}
	return out
}
