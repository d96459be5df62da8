package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/replay"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/category"
)

// Show writes one snapshot for a terminal: live memory, a first verdict from the births of its blocks, the meters of each device as a
// waterfall whose parts sum to the driver's figure, fragmentation, the uses of live memory, the largest sites, ages, how far back the
// recording goes, and notes.
func Show(w io.Writer, s *snapshot.Snapshot, o TextOptions) error {
	p := newPage(o)
	shapes := shapesOf(s)
	p.moment(s, shapes)
	sites := s.Sites()
	var live diff.Tally
	for i := range sites {
		live = plus(live, diff.Tally{Blocks: sites[i].Count, Bytes: sites[i].Bytes, Requested: sites[i].Requested})
	}
	p.prose("", "  ", fmt.Sprintf("%s live%s at %s; %s", p.paint.bold(glue(live.Bytes.String())),
		inBlocks(live.Blocks, s.Blocks.Uncounted()), glue(count(int64(len(sites)), "call site")), glue(markText(s))))
	p.prose("", "  ", "recorded by "+glue(producer(s)))
	ages := diff.Inspect(s)
	p.firstVerdict(s, ages)
	for i, shape := range shapes {
		if !unused(s.Devices[i].Meters) {
			p.line("")
			p.device(s, &s.Devices[i], shape)
		}
	}
	p.categories(s, category.Of(s))
	p.unused(s.Devices, func(d snapshot.Device) bool { return unused(d.Meters) })
	p.line("")
	switch {
	case o.Source != nil:
		p.source(s, live, o.Source)
	case o.By == BySite || o.By == "":
		p.sites(s, sites, live, headsOf(ages.Findings), o)
	default:
		p.groups(s, live, o)
	}
	p.ages(s, o.Run)
	p.history(s)
	if notes := notesOn(s); len(notes) > 0 {
		p.line("")
		for _, n := range notes {
			p.prose("note: ", "      ", brief(n))
		}
	}
	return p.writeTo(w)
}

// markText is "step 50, epoch 1, phase train, rank 0".
func markText(s *snapshot.Snapshot) string {
	var parts []string
	if s.Mark.Step != snapshot.NoStep {
		parts = append(parts, "step "+grouped(s.Mark.Step))
	}
	if s.Mark.Epoch != snapshot.NoStep {
		parts = append(parts, "epoch "+grouped(s.Mark.Epoch))
	}
	if s.Mark.Phase != "" {
		parts = append(parts, "phase "+brief(s.Mark.Phase))
	}
	if s.Rank != snapshot.NoRank {
		parts = append(parts, fmt.Sprintf("rank %d", s.Rank))
	}
	if len(parts) == 0 {
		return "step unknown"
	}
	return strings.Join(parts, ", ")
}

// hasSegments reports whether the file says where memory from the driver is.
func hasSegments(s *snapshot.Snapshot) bool {
	return slices.ContainsFunc(s.Segments, func(seg snapshot.Segment) bool { return seg.Address != 0 })
}

// liveOnly reports whether the file has only the live memory of a device, as files of heap profilers do. The allocator's other memory
// is then unknown, and not zero.
func liveOnly(s *snapshot.Snapshot, d snapshot.Device) bool {
	m := d.Meters
	return !hasSegments(s) && m.Driver == snapshot.Unknown && m.Allocated == m.Reserved && m.Active == m.Reserved
}

// liveOnlyText describes the live memory of such a device.
func liveOnlyText(m snapshot.Meters) string {
	text := glue(m.Requested.String()) + " live"
	if m.Requested.String() != m.Allocated.String() {
		text += ", which take " + glue(m.Allocated.String())
	}
	return text + "; the allocator's other memory is not in the file"
}

// liveFact is a device's main figures.
func liveFact(s *snapshot.Snapshot, d snapshot.Device) fact {
	text := d.Meters.Allocated.String() + " live"
	if !liveOnly(s, d) {
		text += ", " + d.Meters.Reserved.String() + " reserved"
	}
	return fact{deviceName(d), text}
}

func (p *page) device(s *snapshot.Snapshot, d *snapshot.Device, shape shape) {
	p.line(p.paint.bold(deviceTitle(*d)))
	if liveOnly(s, *d) {
		p.prose("  ", "    ", liveOnlyText(d.Meters))
		return
	}
	var figures []string
	for _, m := range meterList(*d, nil) {
		figures = append(figures, glue(m.name+" "+known(m.value)))
	}
	p.prose("  ", "  ", strings.Join(figures, ", "))
	whole := d.Meters.Reserved
	if d.Meters.Driver != snapshot.Unknown {
		whole = d.Meters.Driver
	}
	var rows [][]string
	for _, part := range shownParts(*d, shape.parts) {
		rows = append(rows, []string{part.name, part.bytes.String(), share(part.bytes, whole), bar(part.bytes, whole)})
	}
	p.table([]column{{"", false}, {"", true}, {"", true}, {"", false}}, rows)
	if shape.fragments.freeBlocks > 0 || !inRAM(*d) {
		p.fragments(s, shape.fragments)
	}
	p.private(s, shape.segments)
	if d.Kind != snapshot.Process { // malloc's cache is none that PyTorch could empty
		p.explained(shape.parts, d.Meters.Reserved)
	}
}

func (p *page) fragments(s *snapshot.Snapshot, f fragments) {
	if f.freeBlocks == 0 {
		p.line("  no free block")
		return
	}
	p.prose("  ", "    ", fmt.Sprintf("free: %s in %s, the largest %s; emptying the cache frees %s in %s",
		glue(f.free.String()), glue(count(int64(f.freeBlocks), "block")), glue(f.largestFree.String()), glue(f.empty.String()), glue(count(int64(f.emptySegments), "segment"))))
	if f.pinnedSegments == 0 {
		return
	}
	p.prose("  ", "    ", fmt.Sprintf("pinned: %s in %s, not freed because of less than %.0f %% of live memory, by",
		glue(f.pinned.String()), glue(count(int64(f.pinnedSegments), "segment")), 100*pinShare))
	const shown = 3
	for _, pin := range f.pins[:min(shown, len(f.pins))] {
		where := "blocks without a stack"
		if pin.stack != snapshot.NoStack {
			where = whereOf(s.Stacks.Frames(pin.stack), "").text()
		}
		p.prose("    ", "      ", glue(count(int64(pin.segments), "segment"))+": "+where)
	}
	if n := len(f.pins) - shown; n > 0 {
		p.line("    … " + count(int64(n), "more stack"))
	}
}

// private says how much of a device's segments is in private pools, if there are any.
func (p *page) private(s *snapshot.Snapshot, all []*snapshot.Segment) {
	pools := make(map[string]bool)
	var reserved, live snapshot.Bytes
	segments := int64(0)
	for _, seg := range all {
		if seg.Private == "" {
			continue
		}
		pools[seg.Private] = true
		segments++
		reserved += seg.Size
		for b := seg.FirstBlock; b < seg.FirstBlock+seg.NumBlocks; b++ {
			if s.Blocks.State[b] == snapshot.Live {
				live += s.Blocks.Size[b]
			}
		}
	}
	if segments > 0 {
		p.prose("  ", "    ", fmt.Sprintf("private: %s reserved in %s of %s, %s live; memdiag explain private-pool",
			glue(reserved.String()), glue(count(segments, "segment")), glue(count(int64(len(pools)), "pool")), glue(live.String())))
	}
}

// explained names the catalogue's entries for parts, other than live memory, that take at least a tenth of the reserved memory.
func (p *page) explained(parts []part, reserved snapshot.Bytes) {
	const notable = 10 // at least one part in ten
	causes := map[string]string{"unsplit_bytes": "unsplit-waste", "pending_bytes": "pending-free", "fragmented_bytes": "fragmentation", "cached_bytes": "cache-growth"}
	var ids []string
	for _, part := range parts {
		if id := causes[part.key]; id != "" && notable*part.bytes >= reserved && reserved > 0 {
			ids = append(ids, id)
		}
	}
	if len(ids) > 0 {
		p.prose("  ", "    ", "more: memdiag explain "+strings.Join(ids, "; memdiag explain "))
	}
}

func (p *page) sites(s *snapshot.Snapshot, sites []snapshot.Site, live diff.Tally, named heads, o TextOptions) {
	if len(sites) == 0 {
		p.line("nothing is live")
		return
	}
	p.line(p.paint.bold("Largest call sites"))
	several, uncounted := len(s.Devices) > 1, s.Blocks.Uncounted()
	shown := o.top(len(sites))
	var rows [][]string
	var rest, bare diff.Tally
	wheres := make([]where, shown)
	for i := range wheres {
		wheres[i] = named.where(s.Devices[sites[i].Device], sites[i].Hash, s.Stacks.Frames(sites[i].Stack), sites[i].Label)
		if several {
			wheres[i].device = deviceName(s.Devices[sites[i].Device])
		}
	}
	texts := placesApart(wheres)
	for i := range sites {
		site := &sites[i]
		held := diff.Tally{Blocks: site.Count, Bytes: site.Bytes}
		if site.Stack == snapshot.NoStack {
			bare = plus(bare, held)
		}
		if i >= shown {
			rest = plus(rest, held)
			continue
		}
		rows = append(rows, []string{heldBlocks(site.Count, uncounted), site.Bytes.String(), share(site.Bytes, live.Bytes), texts[i]})
	}
	if n := len(sites) - shown; n > 0 {
		rows = append(rows, []string{heldBlocks(rest.Blocks, uncounted), rest.Bytes.String(), share(rest.Bytes, live.Bytes), "… " + count(int64(n), "more call site")})
	}
	all := "in all"
	if e := exact(live.Bytes); e != "" {
		all += " (" + e + ")"
	}
	rows = append(rows, []string{heldBlocks(live.Blocks, uncounted), live.Bytes.String(), "", all})
	p.table([]column{{"blocks", true}, {"bytes", true}, {"share", true}, {"where", false}}, rows)
	if bare.Blocks > 0 {
		p.prose("  ", "    ", fmt.Sprintf("without a stack: %s%s (%s of what is live)",
			glue(bare.Bytes.String()), inBlocks(bare.Blocks, uncounted), glue(share(bare.Bytes, live.Bytes))))
	}
}

func (p *page) ages(s *snapshot.Snapshot, run *diff.Series) {
	a, ok := agesOf(s, diff.UnseenBirths(s, run))
	if !ok {
		return
	}
	p.line("")
	p.line(p.paint.bold("Live blocks by age"))
	var most snapshot.Bytes
	for _, q := range a.quarters {
		most = max(most, q.Bytes)
	}
	most = max(most, a.unknown.Bytes)
	var rows [][]string
	for i, q := range a.quarters {
		from, next := a.start(i), a.start(i+1)
		name := fmt.Sprintf("%ss %s to %s", a.unit, grouped(from), grouped(max(next-1, from)))
		switch {
		case a.unit == "time":
			name = "after " + duration(time.Duration(from-a.from)*time.Microsecond)
		case i == len(a.quarters)-1:
			name = fmt.Sprintf("%ss %s to %s", a.unit, grouped(from), grouped(a.to))
		}
		rows = append(rows, []string{name, grouped(q.Blocks), q.Bytes.String(), doubtfulBar(q.Bytes, a.unseen[i].Bytes, most)})
	}
	if a.unknown.Blocks > 0 {
		rows = append(rows, []string{"unknown", grouped(a.unknown.Blocks), a.unknown.Bytes.String(), bar(a.unknown.Bytes, most)})
	}
	p.table([]column{{"allocated", false}, {"blocks", true}, {"bytes", true}, {"", false}}, rows)
	if a.guessed() {
		p.prose("  ", "    ", "▒ "+unseenText(run))
	}
}

// unseenText says what is known about births in steps that were not recorded.
func unseenText(run *diff.Series) string {
	if run == nil {
		return "estimated: not every step was recorded; these blocks are spread evenly over the other steps"
	}
	return "estimated: not every step was recorded; these blocks are spread evenly between the snapshots around them"
}

func (p *page) history(s *snapshot.Snapshot) {
	h := s.History
	if h == (snapshot.History{}) {
		return
	}
	p.line("")
	text := count(h.Events, "allocator event")
	if h.First.IsZero() && h.Events > 0 {
		text += " without times"
	}
	if !h.First.IsZero() && !h.Last.IsZero() {
		text += " over " + duration(h.Last.Sub(h.First))
	}
	if h.LostFrees > 0 {
		text += fmt.Sprintf("; %s %s of blocks allocated before: the history is incomplete", count(h.LostFrees, "free"), isOrAre(h.LostFrees))
	}
	switch older := olderThanRecord(s); {
	case older.Blocks == 0 || h.Events == 0:
	case h.First.IsZero() && s.Blocks.BirthEvent == nil:
		text += fmt.Sprintf("; the allocation time of %s (%s) is unknown", glue(count(older.Blocks, "live block")), glue(older.Bytes.String()))
	default:
		text += fmt.Sprintf("; %s of %s %s older than that", glue(count(older.Blocks, "live block")), glue(older.Bytes.String()), isOrAre(older.Blocks))
	}
	p.prose("history: ", "  ", text)
}

func isOrAre(n int64) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// olderThanRecord sums the live blocks whose allocation is not in the record.
func olderThanRecord(s *snapshot.Snapshot) diff.Tally {
	var t diff.Tally
	b := &s.Blocks
	if b.Count != nil {
		return t // totals have no births, whatever was recorded
	}
	for i, state := range b.State {
		if state == snapshot.Live && !hasBirth(b, i) {
			t = plus(t, diff.Tally{Blocks: b.CountOf(i), Bytes: b.Size[i], Requested: b.Requested[i]})
		}
	}
	return t
}

// share is "12.3 %"; "" if the whole is zero.
func share(b, whole snapshot.Bytes) string {
	if whole <= 0 {
		return ""
	}
	return fmt.Sprintf("%.1f %%", 100*float64(b)/float64(whole))
}

// doubtfulBar is bar, with a part marked as doubtful.
func doubtfulBar(b, doubtful, whole snapshot.Bytes) string {
	all := []rune(bar(b, whole))
	sure := min(len([]rune(bar(b-doubtful, whole))), len(all))
	return string(all[:sure]) + strings.Repeat("▒", len(all)-sure)
}

// bar is up to twenty columns long; anything that is more than 0.0 % gets at least one.
func bar(b, whole snapshot.Bytes) string {
	if b <= 0 || whole <= 0 || float64(b)/float64(whole) < 0.0005 {
		return ""
	}
	n := math.Round(20 * float64(b) / float64(whole))
	return strings.Repeat("█", int(min(max(n, 1), 20)))
}

// notesOn are the notes of a snapshot, and known problems of the allocator settings that it was recorded with.
func notesOn(s *snapshot.Snapshot) []string {
	settings, known, err := replay.Recorded(s)
	if !known || err != nil {
		return s.Notes
	}
	return slices.Concat(s.Notes, settings.Traps())
}
