package report

import (
	"cmp"
	"slices"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/category"
)

// categoryShare is the part of a device's live memory in one category.
type categoryShare struct {
	category snapshot.Category
	held     diff.Tally
}

// sharesOf returns for each device the categories of its live blocks, largest first, with unknown memory last. The list is empty for a
// device without any known category.
func sharesOf(s *snapshot.Snapshot, of []snapshot.Category) [][]categoryShare {
	out := make([][]categoryShare, len(s.Devices))
	if of == nil {
		return out
	}
	tallies := make([][snapshot.Categories]diff.Tally, len(s.Devices))
	for row, state := range s.Blocks.State {
		if state == snapshot.Live {
			t := &tallies[s.Segments[s.Blocks.Segment[row]].Device][of[row]]
			*t = plus(*t, diff.Tally{Blocks: s.Blocks.CountOf(row), Bytes: s.Blocks.Size[row], Requested: s.Blocks.Requested[row]})
		}
	}
	for i, device := range s.Devices {
		var shares []categoryShare
		for c, held := range tallies[i] {
			if held.Blocks > 0 && category.OfTensors(device) {
				shares = append(shares, categoryShare{snapshot.Category(c), held})
			}
		}
		if len(shares) == 0 || len(shares) == 1 && shares[0].category == snapshot.NoCategory {
			continue
		}
		slices.SortFunc(shares, func(a, b categoryShare) int {
			if (a.category == snapshot.NoCategory) != (b.category == snapshot.NoCategory) {
				return cmp.Compare(b.category, a.category)
			}
			return cmp.Or(cmp.Compare(b.held.Bytes, a.held.Bytes), cmp.Compare(a.category, b.category))
		})
		out[i] = shares
	}
	return out
}

// categoryText is the name of a category in a table.
func categoryText(c snapshot.Category) string {
	switch c {
	case snapshot.NoCategory:
		return "not known"
	case snapshot.OptimizerState:
		return c.String()
	case snapshot.Activation, snapshot.Buffer, snapshot.CacheBlock, snapshot.Gradient, snapshot.Input, snapshot.Parameter, snapshot.Workspace:
		return c.String() + "s"
	}
	return "collective buffers"
}

// categories lists the uses of live memory, if they are known.
func (p *page) categories(s *snapshot.Snapshot, of []snapshot.Category) {
	for i, shares := range sharesOf(s, of) {
		if shares == nil {
			continue
		}
		title := "What live memory is for"
		if len(s.Devices) > 1 {
			title += ", " + deviceName(s.Devices[i])
		}
		p.line("")
		p.line(p.paint.bold(title))
		var whole snapshot.Bytes
		for _, c := range shares {
			whole += c.held.Bytes
		}
		var rows [][]string
		for _, c := range shares {
			rows = append(rows, []string{categoryText(c.category), heldBlocks(c.held.Blocks, false), c.held.Bytes.String(), share(c.held.Bytes, whole), bar(c.held.Bytes, whole)})
		}
		p.table([]column{{"", false}, {"blocks", true}, {"bytes", true}, {"share", true}, {"", false}}, rows)
	}
}

type categoryJSON struct {
	Category string `json:"category"` // "" if unknown
	tallyJSON
}

func categoriesJSONOf(shares []categoryShare) []categoryJSON {
	var out []categoryJSON
	for _, c := range shares {
		out = append(out, categoryJSON{c.category.String(), tallyOf(c.held, false)})
	}
	return out
}

// categoryOf is the category of all blocks of a site; "" if they differ or it is unknown.
func categoryOf(site *snapshot.Site, of []snapshot.Category) string {
	if of == nil || slices.ContainsFunc(site.Rows, func(row int32) bool { return of[row] != of[site.Rows[0]] }) {
		return ""
	}
	return of[site.Rows[0]].String()
}
