package report

import (
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// where is the place of one row of a table.
type where struct {
	frames   []snapshot.Frame // innermost first; nil for a site without stack
	headline int              // index into frames; -1 if none is the user's
	label    string           // label of a site without stack
	device   string           // "" if all rows are on one device
	bare     bool             // whether calls are shown without the folders of their files
}

// whereOf is the place of a site by itself.
func whereOf(frames []snapshot.Frame, label string) where {
	return where{frames: frames, headline: frame.Headline(frames), label: label}
}

// text is the place, with " in FUNCTION" after a file, and with the library's operation if the user's line may call several. File and
// line are glued.
func (w where) text() string {
	if len(w.frames) == 0 {
		return brief(w.label)
	}
	i := w.origin()
	return frameText(w.frames[i], glue(location(w.frames[i]))) + w.operation()
}

// operation is " → " and the library's operation below the place; "" for none.
func (w where) operation() string {
	if op := frame.Operation(w.frames); op < w.origin() {
		return " → " + shortLabel(w.frames[op])
	}
	return ""
}

// heads are the frames by which findings name their sites, so that a site has the same place everywhere on a page. A finding may be
// named by a call that all its stacks share.
type heads map[string]snapshot.Frame

func headsOf(findings []diff.Finding) heads {
	h := make(heads)
	for i := range findings {
		f := &findings[i]
		if f.Headline < 0 {
			continue
		}
		for _, row := range f.Rows {
			h[siteName(row.Device, row.Hash)] = f.Rows[0].Frames[f.Headline]
		}
	}
	return h
}

// of is the index of the frame that names a site; -1 if none is the user's.
func (h heads) of(d snapshot.Device, hash snapshot.Hash, frames []snapshot.Frame) int {
	if head, ok := h[siteName(d, hash)]; ok {
		if i := slices.Index(frames, head); i >= 0 {
			return i
		}
	}
	return frame.Headline(frames)
}

// where is the place of a site.
func (h heads) where(d snapshot.Device, hash snapshot.Hash, frames []snapshot.Frame, label string) where {
	return where{frames: frames, headline: h.of(d, hash, frames), label: label}
}

// siteName identifies a site among those of all devices.
func siteName(d snapshot.Device, hash snapshot.Hash) string {
	return deviceName(d) + " " + hashText(hash)
}

// whereFound is the place that names a finding.
func whereFound(f *diff.Finding) where {
	return where{frames: f.Rows[0].Frames, headline: f.Headline, label: f.Rows[0].Label}
}

// placesApart are the texts of rows. Rows with the same text are distinguished by the nearest outer call of the user that differs, else
// by the operation below, else by any other call.
func placesApart(rows []where) []string {
	texts := make([]string, len(rows))
	groups := make(map[string][]int)
	for i, w := range rows {
		texts[i] = w.text()
		if w.device != "" {
			texts[i] = w.device + " " + texts[i]
		}
		groups[texts[i]] = append(groups[texts[i]], i)
	}
	for _, group := range groups {
		if len(group) > 1 {
			tellApart(rows, texts, group, waysOut(" ← called from "))
		}
	}
	return texts
}

func waysOut(from string) []way {
	return []way{{from, userCallers}, {" → ", callees}, {from, callers}}
}

// shortPlace is place without folders.
func shortPlace(row *diff.Row, headline int) string {
	return placeOf(withoutFolders(row.Frames), row.Label, headline)
}

func withoutFolders(frames []snapshot.Frame) []snapshot.Frame {
	bare := slices.Clone(frames)
	for i := range bare {
		if file := bare[i].File; file != "" {
			bare[i].File = frame.Base(file)
		}
	}
	return bare
}

// callsApart returns, for rows with equal short names, the calls that distinguish them, chosen as in placesApart: "→ empty" for an
// operation below, "← train.py:7" for a caller; "" for a unique name.
func callsApart(names []string, rows []*diff.Row) []string {
	wheres := make([]where, len(rows))
	groups := make(map[string][]int)
	for i, row := range rows {
		wheres[i] = whereOf(row.Frames, row.Label) // the folder shows what is a library's
		wheres[i].bare = true
		groups[names[i]] = append(groups[names[i]], i)
	}
	texts := make([]string, len(rows))
	for _, group := range groups {
		below := make(map[string][]int)
		for _, i := range group {
			op := wheres[i].operation()
			below[op] = append(below[op], i)
		}
		for op, same := range below {
			for _, i := range same {
				if len(below) > 1 {
					texts[i] = op
				}
			}
			if len(same) > 1 {
				tellApart(wheres, texts, same, waysOut(" ← "))
			}
		}
	}
	for i := range texts {
		texts[i] = strings.TrimSpace(strings.ReplaceAll(texts[i], noBreak, " "))
	}
	return texts
}

// way is a walk from a stack's place, and the arrow before its calls.
type way struct {
	arrow string
	calls func(where) []string // nearest first
}

// tellApart appends to the texts of a group the calls that differ, by the first of the ways that finds any.
func tellApart(rows []where, texts []string, group []int, ways []way) {
	if len(ways) == 0 {
		return // no difference can be shown
	}
	w := ways[0]
	calls := make(map[int][]string, len(group))
	for _, row := range group {
		calls[row] = w.calls(rows[row])
	}
	var split func(group []int, depth int)
	split = func(group []int, depth int) {
		parts := make(map[string][]int)
		ended := true
		for _, row := range group {
			call := ""
			if depth < len(calls[row]) {
				call, ended = calls[row][depth], false
			}
			parts[call] = append(parts[call], row)
		}
		for call, part := range parts {
			if call != "" && len(parts) > 1 {
				for _, row := range part {
					texts[row] += w.arrow + glue(call)
				}
			}
			switch {
			case len(part) == 1:
			case ended:
				tellApart(rows, texts, part, ways[1:])
			default:
				split(part, depth+1)
			}
		}
	}
	split(group, 0)
}

// origin is the frame that names a stack's place.
func (w where) origin() int { return frame.Origin(w.frames, w.headline) }

// shown is a frame as it is written in calls.
func (w where) shown(f snapshot.Frame) snapshot.Frame {
	if w.bare {
		return withoutFolders([]snapshot.Frame{f})[0]
	}
	return f
}

// userCallers are the user's calls outside of the place.
func userCallers(w where) []string {
	var calls []string
	own := frame.Own(w.frames)
	for _, f := range w.frames[w.origin()+1:] {
		switch {
		case !own(f):
		case f.Line > 0:
			calls = append(calls, spot(w.shown(f)))
		default:
			calls = append(calls, shortFunction(f)) // all are in one binary
		}
	}
	return calls
}

// callers are all calls outside of the place.
func callers(w where) []string {
	var calls []string
	for _, f := range w.frames[w.origin()+1:] {
		calls = append(calls, shortLabel(w.shown(f)))
	}
	return calls
}

// callees are the calls below the place.
func callees(w where) []string {
	var calls []string
	for i := w.origin() - 1; i >= 0; i-- {
		calls = append(calls, shortLabel(w.shown(w.frames[i])))
	}
	return calls
}
