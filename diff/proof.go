package diff

import (
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

const whyLost = "%d of its blocks are lost: their handles were collected before they released their reference, so nothing can release the blocks"

// prove makes a leak certain, or calls an inconclusive cluster a leak, if at least half of its new blocks, and at
// least two, are lost: the collector freed their handles before these released their references. A smaller number is
// added to the reasons of anything that grew.
func (r *Result) prove(grown []cluster) {
	before, after := lostBlocks(r.First), lostBlocks(r.Last)
	if len(after) == 0 {
		return
	}
	for i := range grown {
		c := &grown[i]
		lost, held := int64(0), int64(0)
		for _, row := range c.rows {
			lost += after[row.Key] - before[row.Key]
			held += row.Growth().Blocks
		}
		if lost <= 0 {
			continue
		}
		switch {
		case 2*lost < held || lost < 2 || c.j.Verdict != Leak && c.j.Verdict != Inconclusive:
			c.j.Because(whyLost, lost)
		case c.j.Verdict == Leak:
			c.j.Evidence = Proof
			c.j.Because(whyLost, lost)
		default:
			c.j.Reasons = nil
			c.j.Call(Leak, Proof, whyLost, lost)
		}
	}
}

// prove does the same for a site of one snapshot.
func (o *SiteAges) prove(s *snapshot.Snapshot) {
	lost := int64(0)
	for _, row := range o.Site.Rows {
		if s.Blocks.Owners != nil && s.Blocks.Owners[row]&snapshot.Lost != 0 {
			lost++
		}
	}
	if lost >= 2 && 2*lost >= o.Site.Count {
		o.Verdict, o.Evidence, o.Reasons = Leak, Proof, nil
		o.because(whyLost, lost)
	}
}

// lostBlocks counts the lost blocks of each site in a snapshot; nil for none.
func lostBlocks(s *snapshot.Snapshot) map[series.SiteKey]int64 {
	var lost map[series.SiteKey]int64
	for i, o := range s.Blocks.Owners {
		if o&snapshot.Lost == 0 || s.Blocks.State[i] != snapshot.Live || s.Blocks.Stack[i] == snapshot.NoStack {
			continue
		}
		if lost == nil {
			lost = make(map[series.SiteKey]int64)
		}
		site := snapshot.SiteKey{Device: s.Segments[s.Blocks.Segment[i]].Device, Hash: s.Stacks.Hash(s.Blocks.Stack[i])}
		lost[series.KeyOf(s, site)] += s.Blocks.CountOf(i)
	}
	return lost
}
