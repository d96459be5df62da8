package report

import (
	"strconv"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// location is "train.py:218", without the line if it is unknown; "" for a frame without a file.
func location(f snapshot.Frame) string { return atLine(f, brief(f.File)) }

func atLine(f snapshot.Frame, file string) string {
	switch {
	case f.File == "" || f.File == "??":
		return ""
	case f.Line <= 0:
		return file
	}
	return file + ":" + strconv.Itoa(f.Line)
}

// function is never empty.
func function(f snapshot.Frame) string {
	if f.Function == "" {
		return "<unknown function>"
	}
	return Printable(f.Function)
}

// besidePlace is the function that is shown beside a frame's place; "" if only the place is known, as in files of tracemalloc.
func besidePlace(f snapshot.Frame) string {
	if f.Function == "" && location(f) != "" {
		return ""
	}
	return shortFunction(f)
}

// frameText is "train.py:218 in train", or the known part of it; at is the location.
func frameText(f snapshot.Frame, at string) string {
	name := besidePlace(f)
	if at != "" && name != "" {
		return at + " in " + name
	}
	return at + name
}

// spot is the place of a frame: its file and line, else its function, else its file.
func spot(f snapshot.Frame) string {
	if at := location(f); at != "" && (f.Line > 0 || f.Function == "") {
		return at
	}
	return shortFunction(f)
}

// shortFunction is a frame's function; native code without its parameters.
func shortFunction(f snapshot.Frame) string {
	f.Function = frame.WithoutParameters(f)
	return shortened(function(f))
}

// place names a row briefly: its headline frame, else the frame that best shows what allocated, else the label of a site without stack.
func place(row *diff.Row, headline int) string { return placeOf(row.Frames, row.Label, headline) }

func placeOf(frames []snapshot.Frame, label string, headline int) string {
	switch {
	case headline >= 0 && headline < len(frames):
		return spot(frames[headline])
	case len(frames) > 0:
		return spot(frames[frame.Origin(frames, headline)])
	}
	return brief(label)
}

// stackLine is one line of a stack as the text report shows it: a frame, or
// frames that it leaves out.
type stackLine struct {
	frame    *snapshot.Frame // nil: skipped frames
	headline bool
	library  bool
	skipped  int
	what     string // of skipped frames, in the singular: "library frame", "frame"
}

// maxUserFrames bounds a stack's lines. keepOuter outermost ones are kept, and the innermost: people look for these.
const maxUserFrames, keepOuter = 16, 4

// stackLines lists a stack outermost first, from the user's outermost frame on: the user's frames, and the library frame below them
// that names the operation. Noise is left out without a note.
func stackLines(frames []snapshot.Frame, headline int, all bool) []stackLine {
	op := -1
	if len(frames) > 0 {
		op = frame.Operation(frames)
	}
	var lines []stackLine
	// A note takes as much room as one frame, so a single skipped frame is shown.
	skip := func(f *snapshot.Frame, what string) {
		if n := len(lines); n > 0 && lines[n-1].what == what {
			lines[n-1].skipped++
			lines[n-1].frame = nil
			return
		}
		lines = append(lines, stackLine{frame: f, library: true, skipped: 1, what: what})
	}
	own, user := frame.Own(frames), 0
	for i := range frames {
		if own(frames[i]) {
			user++
		}
	}
	origin := frame.Origin(frames, headline)
	seen := 0
	for i := len(frames) - 1; i >= 0; i-- {
		f := &frames[i]
		switch {
		case user == 0 && i == origin:
			lines = append(lines, stackLine{frame: f, library: true, headline: i != op})
		case own(*f):
			seen++
			// A comprehension has a frame of its own, which tracemalloc gives the same line.
			if n := len(lines); !all && n > 0 && lines[n-1].frame != nil && *lines[n-1].frame == *f {
				lines[n-1].headline = lines[n-1].headline || i == headline
				continue
			}
			if !all && user > maxUserFrames && seen > keepOuter && user-seen >= maxUserFrames-keepOuter && i != headline {
				skip(f, "frame")
				continue
			}
			lines = append(lines, stackLine{frame: f, headline: i == headline})
		case user > 0 && seen == 0:
			// Frames that start the user's program are left out.
		case i == op && seen == user, all && !frame.Noise(*f):
			lines = append(lines, stackLine{frame: f, library: true})
		case frame.Noise(*f):
		case i < op && seen == user:
			// Library frames below the operation are left out.
		default:
			skip(f, "library frame")
		}
	}
	return lines
}

// shortLabel is frameLabel without folders and parameters.
func shortLabel(f snapshot.Frame) string {
	name := besidePlace(f)
	if location(f) == "" {
		return name
	}
	f.File = frame.Base(f.File)
	return withPlace(name, location(f))
}

// frameLabel is "function (file:line)", at full length.
func frameLabel(f snapshot.Frame) string {
	at := atLine(f, Printable(f.File))
	if at == "" {
		return function(f)
	}
	return withPlace(Printable(f.Function), at)
}

func withPlace(name, at string) string {
	if name == "" {
		return at
	}
	return name + " (" + at + ")"
}
