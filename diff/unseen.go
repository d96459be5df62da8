package diff

import (
	"maps"
	"slices"

	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// Unseen are live blocks of a site that a recorder counted without seeing their births, since it watches only some
// steps. They were born in steps From to To-1.
type Unseen struct {
	Device   snapshot.Device
	Hash     snapshot.Hash
	From, To int64
	Tally

	watched []int64 // steps with an observed birth, ascending
}

// UnseenBirths bounds the births of blocks that nobody saw, by site and step. over is the series of the snapshot's
// run: a site's blocks were born between the two marks where it had fewer and where it had more. If over is nil, or
// does not show it, births may lie anywhere before the snapshot. The result is nil if each birth was seen, or none is
// known.
func UnseenBirths(s *snapshot.Snapshot, over *Series) []Unseen {
	b := &s.Blocks
	if b.BirthStep == nil || b.Count == nil || s.Mark.Step <= 0 {
		return nil
	}
	seen := make(map[int64]struct{})
	for i, state := range b.State {
		if state == snapshot.Live && b.BirthStep[i] != snapshot.NoStep {
			seen[b.BirthStep[i]] = struct{}{}
		}
	}
	watched := slices.Sorted(maps.Keys(seen))
	var out []Unseen
	for _, site := range s.Sites() {
		var all Tally
		var births []int64
		for _, row := range site.Rows {
			if b.BirthStep[row] == snapshot.NoStep {
				continue
			}
			births = append(births, b.BirthStep[row])
			all = all.Plus(unseenOf(b, int(row)))
		}
		if all.Blocks == 0 {
			continue
		}
		slices.Sort(births)
		whole := Unseen{Device: s.Devices[site.Device], Hash: site.Hash, To: s.Mark.Step, Tally: all, watched: watched}
		out = append(out, whole.between(over, series.KeyOf(s, site.SiteKey), births)...)
	}
	return out
}

// unseenOf is what a row stands for beyond the one block that was seen.
func unseenOf(b *snapshot.Blocks, row int) Tally {
	n := b.CountOf(row)
	return Tally{Blocks: n - 1, Bytes: b.Size[row] - b.Size[row]/snapshot.Bytes(n), Requested: b.Requested[row] - b.Requested[row]/snapshot.Bytes(n)}
}

// SeenOf is the one block of a row whose birth was seen.
func SeenOf(b *snapshot.Blocks, row int) Tally {
	return Tally{Blocks: b.CountOf(row), Bytes: b.Size[row], Requested: b.Requested[row]}.Minus(unseenOf(b, row))
}

// between divides the blocks among the intervals between marks in which the site gained more than the births that
// were seen.
func (u Unseen) between(over *Series, key series.SiteKey, births []int64) []Unseen {
	if over == nil || over.Axis.Unit != Step {
		return []Unseen{u}
	}
	site := over.SiteOf(key)
	if site == nil {
		return []Unseen{u}
	}
	var parts []Unseen
	var gains []int64
	total, from, had := int64(0), int64(0), int64(0)
	for i, mark := range over.Marks {
		if mark.Step > u.To {
			break
		}
		low, _ := slices.BinarySearch(births, from)
		high, _ := slices.BinarySearch(births, mark.Step)
		if gain := site.Blocks[i] - had - int64(high-low); gain > 0 && mark.Step > from {
			part := u
			part.From, part.To = from, mark.Step
			total += gain
			parts, gains = append(parts, part), append(gains, total)
		}
		from, had = mark.Step, site.Blocks[i]
	}
	if total == 0 {
		return []Unseen{u}
	}
	var given Tally
	for i := range parts {
		until := u.Part(gains[i], total)
		parts[i].Tally, given = until.Minus(given), until
	}
	return slices.DeleteFunc(parts, func(p Unseen) bool { return p.Blocks == 0 })
}

// Within is how many of the blocks fall into steps from from to to-1, if they are spread evenly over the unwatched
// steps. The parts of a partition sum to the whole.
func (u *Unseen) Within(from, to int64) Tally {
	return u.until(to).Minus(u.until(from))
}

// until is how many blocks fall into steps before to.
func (u *Unseen) until(to int64) Tally {
	to = min(max(to, u.From), u.To)
	if all := u.unwatched(u.To); all > 0 {
		return u.Part(u.unwatched(to), all)
	}
	return u.Part(to-u.From, u.To-u.From)
}

// unwatched counts the steps from From to to-1 without an observed birth.
func (u *Unseen) unwatched(to int64) int64 {
	low, _ := slices.BinarySearch(u.watched, u.From)
	high, _ := slices.BinarySearch(u.watched, to)
	return to - u.From - int64(high-low)
}
