package corpus

import (
	"slices"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// decided counts promises that what is undecided at the end of one part is decided at that of
// another, which the run has, and those that held.
type decided struct {
	Made int `json:"made"`
	Kept int `json:"kept"`
}

func (d decided) String() string {
	if d.Made == 0 {
		return "-"
	}
	return of(d.Kept, d.Made)
}

func (d *decided) add(e decided) { d.Made, d.Kept = d.Made+e.Made, d.Kept+e.Kept }

// promised is how the promises of a run's findings were kept, of what a rule says at the end of
// each part, by its number. Where several parts promise the same of a finding, each counts.
func promised(marks []int64, parts []opinion) decided {
	var d decided
	for part := range parts {
		for _, f := range parts[part].undecided {
			due := dueAt(f.more, marks, part)
			if due <= part || due >= len(parts) {
				continue
			}
			d.Made++
			open := slices.ContainsFunc(parts[due].undecided, func(g flag) bool {
				return slices.ContainsFunc(g.hashes, func(h snapshot.Hash) bool { return slices.Contains(f.hashes, h) })
			})
			if !open {
				d.Kept++
			}
		}
	}
	return d
}

// dueAt is the part at whose end a promise of a part is due; 0 for none.
func dueAt(more diff.More, marks []int64, part int) int {
	switch {
	case more.Snapshots > 0:
		return part + more.Snapshots
	case more.Steps > 0:
		at, _ := slices.BinarySearch(marks, marks[part]+more.Steps)
		return at
	}
	return 0
}
