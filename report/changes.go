package report

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// Changes writes for a terminal how two snapshots, each at a moment of its record, differ. They may be of different runs. It lists the
// difference of each device, then the call sites, the largest difference first. names are the names of the files.
func Changes(w io.Writer, a, b *snapshot.Snapshot, names [2]string, o TextOptions) error {
	p := newPage(o)
	short := [2]string{filepath.Base(names[0]), filepath.Base(names[1])}
	if short[0] == short[1] {
		short = names
	}
	for _, d := range devicesOfBoth(a, b) {
		before, after := activeOn(a, d), activeOn(b, d)
		p.prose("", "  ", fmt.Sprintf("%s: %s in %s, %s in %s",
			p.paint.bold(fmt.Sprintf("%s of %s is %s", momentName(b.Moment.At), deviceName(d), higher(after-before))),
			glue(before.String()), brief(short[0]), glue(after.String()), brief(short[1])))
	}
	for i, s := range []*snapshot.Snapshot{a, b} {
		p.prose("  ", "    ", fmt.Sprintf("%s: %s", brief(names[i]), momentPlace(s)))
	}
	p.line("")
	changes := changesBySize(a, b)
	if len(changes) == 0 {
		p.line("every call site holds the same in both")
		return p.writeTo(w)
	}
	shown := o.top(len(changes))
	wheres := make([]where, shown)
	for i := range wheres {
		wheres[i] = whereOf(changes[i].Frames, changes[i].Label)
		if len(b.Devices) > 1 {
			wheres[i].device = deviceName(changes[i].Device)
		}
	}
	texts := placesApart(wheres)
	var rows [][]string
	var rest, all diff.Change
	for i := range changes {
		c := &changes[i]
		all.Before, all.After = plus(all.Before, c.Before), plus(all.After, c.After)
		if i >= shown {
			rest.Before, rest.After = plus(rest.Before, c.Before), plus(rest.After, c.After)
			continue
		}
		rows = append(rows, changeRow(c, texts[i]))
	}
	if n := len(changes) - shown; n > 0 {
		rows = append(rows, changeRow(&rest, "… "+count(int64(n), "more site")))
	}
	rows = append(rows, changeRow(&all, "all call sites that differ"))
	p.table([]column{{"change", true}, {"before", true}, {"after", true}, {"where", false}}, rows)
	return p.writeTo(w)
}

func changeRow(c *diff.Change, where string) []string {
	return []string{signed(c.Growth()), c.Before.Bytes.String(), c.After.Bytes.String(), where}
}

// changesBySize lists the call sites that differ, the largest difference first.
func changesBySize(a, b *snapshot.Snapshot) []diff.Change {
	changes := slices.DeleteFunc(diff.Changes(a, b), func(c diff.Change) bool { return c.Growth() == 0 })
	size := func(c diff.Change) snapshot.Bytes { return max(c.Growth(), -c.Growth()) }
	slices.SortStableFunc(changes, func(x, y diff.Change) int { return cmp.Compare(size(y), size(x)) })
	return changes
}

// devicesOfBoth lists the devices with any active memory in either snapshot.
func devicesOfBoth(a, b *snapshot.Snapshot) []snapshot.Device {
	var out []snapshot.Device
	for _, d := range slices.Concat(b.Devices, a.Devices) {
		same := func(e snapshot.Device) bool { return e.Kind == d.Kind && e.Index == d.Index }
		if !slices.ContainsFunc(out, same) && activeOn(a, d)+activeOn(b, d) > 0 {
			out = append(out, d)
		}
	}
	return out
}

// activeOn is the active memory of a snapshot on a device: live memory, and freed memory that a stream still uses.
func activeOn(s *snapshot.Snapshot, d snapshot.Device) snapshot.Bytes {
	for _, e := range s.Devices {
		if e.Kind == d.Kind && e.Index == d.Index {
			return e.Meters.Active
		}
	}
	return 0
}

func higher(by snapshot.Bytes) string {
	switch {
	case by > 0:
		return glue(by.String()) + " higher"
	case by < 0:
		return glue((-by).String()) + " lower"
	}
	return "as high"
}

// changesJSON is the JSON form of Changes.
type changesJSON struct {
	SchemaVersion int              `json:"schema_version"`
	Before        *momentJSON      `json:"before"`
	After         *momentJSON      `json:"after"`
	Devices       []activeJSON     `json:"devices"`
	Sites         []siteChangeJSON `json:"sites"`
}

type activeJSON struct {
	Device string `json:"device"`
	Before int64  `json:"before_bytes"`
	After  int64  `json:"after_bytes"`
}

type siteChangeJSON struct {
	Device string      `json:"device"`
	Where  string      `json:"where"`
	Before tallyJSON   `json:"before"`
	After  tallyJSON   `json:"after"`
	Frames []frameJSON `json:"frames"`
}

// ChangesJSON writes the content of Changes as JSON, with all call sites that differ.
func ChangesJSON(w io.Writer, a, b *snapshot.Snapshot) error {
	out := changesJSON{SchemaVersion: schemaVersion, Before: momentOf(a), After: momentOf(b), Devices: []activeJSON{}, Sites: []siteChangeJSON{}}
	for _, d := range devicesOfBoth(a, b) {
		out.Devices = append(out.Devices, activeJSON{deviceName(d), int64(activeOn(a, d)), int64(activeOn(b, d))})
	}
	for _, c := range changesBySize(a, b) {
		out.Sites = append(out.Sites, siteChangeJSON{deviceName(c.Device), unglued(whereOf(c.Frames, c.Label).text()), tallyOf(c.Before, false), tallyOf(c.After, false), framesOf(c.Frames)})
	}
	return writeJSON(w, out)
}
