package report

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// timelineSites is how many sites a timeline distinguishes; the others are one.
const timelineSites = 2000

// timelineView is the input of the template for a timeline's page.
type timelineView struct {
	Title, Lead, Name, Version string
	Notes                      []string
	Policy                     string
	Style                      template.CSS
	Script                     template.JS
	Data                       timelineJSON
}

// timelineJSON is the input of the page's script.
type timelineJSON struct {
	Events    int64 `json:"events"`
	BinEvents int64 `json:"bin_events"`
	Peak      int64 `json:"peak"`
	PeakEvent int64 `json:"peak_event"`
	// Bins have the most live bytes, the most reserved bytes (0 if unknown), the folded bytes, and the microseconds from the record's
	// first event.
	Bins    [][4]int64 `json:"bins"`
	Steps   []int64    `json:"steps"`
	Refused [][2]int64 `json:"refused"` // event and bytes
	// Lives are four varints each, in base64: events since the previous birth, events until the free or 0, bytes, and the site.
	Lives string     `json:"lives"`
	Count int        `json:"count"`
	Sites []siteJSON `json:"sites"`
	Names [][3]any   `json:"names"` // names of calls: full, short, and whether it is a library's
}

// siteJSON is a site. Its frames are indices into the names, the outermost call first.
type siteJSON struct {
	Label  string `json:"label"`
	Frames []int  `json:"frames"`
	Leak   string `json:"leak,omitempty"` // "leak" or "may be a leak", judged by the births of its live blocks
}

// TimelinePage writes what a device's memory did during a snapshot's record, as one self-contained HTML file: each block as a band from
// its allocation to its free, as in PyTorch's own viewer, and what was live at any moment, by site and by call.
func TimelinePage(w io.Writer, s *snapshot.Snapshot, line *snapshot.Timeline, about About) error {
	v := timelineView{Name: nameOf(about), Version: brief(about.Version)}
	device := deviceName(s.Devices[line.Device])
	v.Title = fmt.Sprintf("%s live at the peak of %s", line.Peak, device)
	if n := len(line.Refused); n > 0 {
		v.Title = fmt.Sprintf("out of memory on %s: %s was asked for, %s live at the peak", device, line.Refused[n-1].Bytes, line.Peak)
	}
	v.Lead = timelineLead(s, line)
	suspects := suspectsOn(s, line.Device)
	v.Notes = timelineNotes(s, line)
	if len(suspects) > 0 {
		v.Notes = append(v.Notes, fmt.Sprintf("Red is what leaks, or may leak, by the age of its live blocks: %s.", count(int64(len(suspects)), "call site")))
	}
	v.Data = timelineData(s, line, suspects)
	return v.write(w)
}

// timelineLead says how long the record is, and what is live at its start and end.
func timelineLead(s *snapshot.Snapshot, line *snapshot.Timeline) string {
	var older, left snapshot.Bytes
	for _, l := range line.Lives {
		if l.Born == 0 {
			older += l.Size
		}
		if l.Died == 0 {
			left += l.Size
		}
	}
	text := fmt.Sprintf("A history of %s", count(line.Events, "allocator event"))
	if first, last := line.Bins[0].Time, line.Bins[len(line.Bins)-1].Time; !first.IsZero() && last.After(first) {
		text += " over " + duration(last.Sub(first))
	}
	return fmt.Sprintf("%s; recorded by %s. %s was live before it, %s is live at its end. Sizes are as the program asked for them.", text, producer(s), older, left)
}

// timelineNotes say which other devices have a record, and how many blocks are only in the total.
func timelineNotes(s *snapshot.Snapshot, line *snapshot.Timeline) []string {
	var notes, others []string
	for _, other := range s.Timelines {
		if other != line {
			others = append(others, deviceName(s.Devices[other.Device]))
		}
	}
	if len(others) > 0 {
		notes = append(notes, "There is a history of "+strings.Join(others, ", ")+" too: --device draws it.")
	}
	if line.Folded > 0 {
		notes = append(notes, fmt.Sprintf("%s are drawn one by one, those that hold most bytes for most events; %s smaller or briefer ones are in the total alone.",
			count(int64(len(line.Lives)), "block"), grouped(line.Folded)))
	}
	return notes
}

// suspectsOn are the stacks on a device that are leaks or possible leaks by the births of their blocks, with which of the two they are.
func suspectsOn(s *snapshot.Snapshot, device int) map[snapshot.Hash]string {
	out := make(map[snapshot.Hash]string)
	ages := diff.Inspect(s)
	for i := range ages.Findings {
		what := "may be a leak"
		if ages.Findings[i].Verdict == diff.Leak {
			what = "leak"
		}
		for _, row := range ages.Findings[i].Rows {
			if row.Device.Kind == s.Devices[device].Kind && row.Device.Index == s.Devices[device].Index {
				out[row.Hash] = what
			}
		}
	}
	return out
}

func timelineData(s *snapshot.Snapshot, line *snapshot.Timeline, suspects map[snapshot.Hash]string) timelineJSON {
	out := timelineJSON{Events: line.Events, BinEvents: line.BinEvents, Peak: int64(line.Peak), PeakEvent: line.PeakEvent, Steps: append([]int64{}, line.Steps...), Refused: [][2]int64{}, Sites: []siteJSON{}, Names: [][3]any{}, Count: len(line.Lives)}
	clock := clockOf(line)
	for i, b := range line.Bins {
		at := int64(clock.starts[i])
		out.Bins = append(out.Bins, [4]int64{int64(b.Live), int64(b.Reserved), int64(b.Folded), at})
	}
	if slices.ContainsFunc(line.Bins, func(b snapshot.TimelineBin) bool { return b.Reserved < b.Live }) {
		for i := range out.Bins { // the record lacks the events of segments
			out.Bins[i][1] = 0
		}
	}
	for _, r := range line.Refused {
		out.Refused = append(out.Refused, [2]int64{r.Event, int64(r.Bytes)})
	}
	number := out.sites(s, line, suspects)
	var lives []byte
	last := int64(0)
	for _, l := range line.Lives {
		lived := int64(0)
		if l.Died > 0 {
			lived = l.Died - l.Born
		}
		for _, v := range []int64{l.Born - last, lived, int64(l.Size), int64(number[l.Stack])} {
			lives = binary.AppendUvarint(lives, uint64(v))
		}
		last = l.Born
	}
	out.Lives = base64.StdEncoding.EncodeToString(lives)
	return out
}

// sites lists the stacks by what they hold at the peak, suspects first, and returns the number of each.
func (t *timelineJSON) sites(s *snapshot.Snapshot, line *snapshot.Timeline, suspects map[snapshot.Hash]string) map[snapshot.StackID]int {
	atPeak := make(map[snapshot.StackID]snapshot.Bytes)
	for _, l := range line.Lives {
		held := snapshot.Bytes(0)
		if l.Born <= line.PeakEvent && (l.Died == 0 || l.Died > line.PeakEvent) {
			held = l.Size
		}
		atPeak[l.Stack] += held
	}
	stacks := make([]snapshot.StackID, 0, len(atPeak))
	for stack := range atPeak {
		stacks = append(stacks, stack)
	}
	slices.SortFunc(stacks, func(x, y snapshot.StackID) int {
		suspectX, suspectY := suspects[s.Stacks.Hash(x)] != "", suspects[s.Stacks.Hash(y)] != ""
		switch {
		case suspectX && !suspectY:
			return -1
		case suspectY && !suspectX:
			return 1
		}
		return cmp.Or(cmp.Compare(atPeak[y], atPeak[x]), cmp.Compare(x, y))
	})
	number, names := make(map[snapshot.StackID]int, len(stacks)), make(map[snapshot.Frame]int)
	wheres := make([]where, min(len(stacks), timelineSites))
	for i := range wheres {
		wheres[i] = whereOf(s.Stacks.Frames(stacks[i]), "<no stack recorded>")
	}
	labels := placesApart(wheres)
	for i, stack := range stacks {
		number[stack] = min(i, timelineSites)
		if i < timelineSites {
			t.Sites = append(t.Sites, siteJSON{unglued(labels[i]), t.calls(s.Stacks.Frames(stack), names), suspects[s.Stacks.Hash(stack)]})
		} else if i == timelineSites {
			t.Sites = append(t.Sites, siteJSON{Label: fmt.Sprintf("(%s more call sites)", grouped(int64(len(stacks)-i))), Frames: []int{}})
		}
	}
	return number
}

// calls adds the names of a stack's calls, and returns their numbers.
func (t *timelineJSON) calls(frames []snapshot.Frame, names map[snapshot.Frame]int) []int {
	own, calls := frame.Own(frames), drawnCalls(frames)
	out := make([]int, 0, len(calls))
	for _, i := range calls[:min(maxFlameDepth, len(calls))] {
		f := frames[i]
		n, known := names[f]
		if !known {
			n = len(t.Names)
			names[f] = n
			t.Names = append(t.Names, [3]any{shortened(frameLabel(f)), shortLabel(f), !own(f)})
		}
		out = append(out, n)
	}
	return out
}

func (v *timelineView) write(w io.Writer) error {
	t, err := template.ParseFS(assets, "assets/timeline.html")
	if err != nil {
		return fmt.Errorf("timeline template: %w", err)
	}
	script, err := joined("assets/sandwich.js", "assets/flame.js", "assets/timeline.js")
	if err != nil {
		return err
	}
	style, err := joined("assets/flame.css", "assets/page.css", "assets/timeline.css")
	if err != nil {
		return err
	}
	v.Script, v.Style, v.Policy = template.JS(script), template.CSS(style), policy(script, style) //nolint:gosec // our own assets
	var b bytes.Buffer
	if err := t.Execute(&b, v); err != nil {
		return fmt.Errorf("timeline: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}
