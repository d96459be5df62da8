package torch

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/memdiag/memdiag/snapshot"
)

// refusals are the reasons for which the reader refuses what its twin, which
// has the whole tree before it and believes any number, can make sense of. Real
// files need none of it, such as a dict that is a block and an event. Dicts go into
// their lists as soon as the next one begins, and are then not on the stack any more.
var refusals = regexp.MustCompile(`lies in an unexpected place|stored out of turn|is memoised twice|to something passed already` +
	`|a second time the list|two lists of blocks|, not a list that can be read|the list of (traces|annotations) holds|holds (a frame|a container passed already|a dict passed already)|device -?\d+ is out of range|(block|segment|request|sum) of -?\d+ bytes` +
	`|(items are added|attributes are given) to (a frame|a list|a container passed already)|is in its list already|pickle protocol \d+ is not known|a frame of \d+ bytes, but|add up to more`)

// early are refusals of parts as soon as they are read. The twin reads them too if
// the pickle throws those parts away after all, which no pickler does.
var early = regexp.MustCompile(`a block without a size|neither total_size nor blocks|(list of \w+|a trace|a history) holds`)

// compareWithTwin fails where reader and twin read different things, and where
// only one of them can read the file for no good reason.
func compareWithTwin(t *testing.T, b []byte, tree func([]byte) (root any, lost bool, err error)) {
	s, err := Decode("file", bytes.NewReader(b), int64(len(b)), Options{})
	var refused *snapshot.FormatError
	if err != nil && !errors.As(err, &refused) {
		t.Fatalf("%T: %v", err, err)
	}
	if err != nil && (strings.Contains(err.Error(), "\n") || refused.Offset < 0 || refused.Offset > int64(len(b))) {
		t.Fatalf("offset %d: %v", refused.Offset, err)
	}
	if len(b) > 1<<16 {
		return
	}
	root, lost, treeErr := tree(b)
	var want string
	if treeErr == nil {
		want, treeErr = twin(root)
	}
	switch {
	case err == nil && treeErr != nil:
		t.Fatalf("only the reader reads this: %v", treeErr)
	case err == nil:
		if got := describe(s); got != want {
			t.Fatalf("reader and twin differ\n%s", firstDifference(got, want))
		}
	case treeErr == nil && !refusals.MatchString(err.Error()) && !(lost && early.MatchString(err.Error())):
		t.Fatalf("only the twin reads this: %v", err)
	}
}

// compareWithMachine fails where the short cut and the machine alone differ.
func compareWithMachine(t interface{ Fatalf(string, ...any) }, b []byte) {
	s, err := Decode("file", bytes.NewReader(b), int64(len(b)), Options{})
	var m *machine
	var plainErr error
	for _, keep := range []bool{false, true} {
		m = newMachine(newInput("file", bytes.NewReader(b), int64(len(b))))
		m.quick.off, m.keep = true, keep
		m.build.allow(int64(len(b)), 0)
		if plainErr = decodePickle(m); !m.shared {
			break
		}
	}
	if plainErr == nil {
		plainErr = m.behind()
	}
	if (err == nil) != (plainErr == nil) {
		t.Fatalf("with the short cut: %v; without: %v", err, plainErr)
	}
	if err != nil {
		return
	}
	plain := m.build.snapshot(snapshot.NewStacks())
	if got, want := describe(s), describe(plain); got != want || !slices.Equal(s.Notes, plain.Notes) {
		t.Fatalf("the short cut differs\n%s\n%q\n%q", firstDifference(got, want), s.Notes, plain.Notes)
	}
}

func FuzzPickle(f *testing.F) {
	for _, name := range seedNames(f, "*.pickle") {
		if !strings.HasPrefix(name, "big") {
			f.Add(seed(f, name))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if sniff(b, true) != pickleFormat {
			return
		}
		compareWithTwin(t, b, pickleTreeLost)
		compareWithMachine(t, b)
		goBack(t, b)
	})
}

func FuzzJSON(f *testing.F) {
	for _, name := range seedNames(f, "*.json") {
		f.Add(seed(f, name))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		// The reader is laxer than encoding/json about what is in a string and
		// how a number is written.
		if sniff(b, true) != jsonFormat || !json.Valid(b) || !utf8.Valid(b) {
			return
		}
		compareWithTwin(t, b, func(b []byte) (any, bool, error) {
			root, err := jsonTree(b)
			return root, false, err
		})
		goBack(t, b)
	})
}

// goBack reads each moment of a file, and its timeline: the blocks of a segment lie in it, in order, and what is refused is said.
func goBack(t interface{ Fatalf(string, ...any) }, b []byte) {
	for _, at := range []string{"peak", "oom", "step:1", "time:1ms"} {
		moment, err := snapshot.ParseAt(at)
		if err != nil {
			t.Fatalf("%v", err)
		}
		s, err := Decode("file", bytes.NewReader(b), int64(len(b)), Options{At: moment})
		if err != nil {
			var refused *snapshot.FormatError
			if !errors.As(err, &refused) {
				t.Fatalf("%T: %v", err, err)
			}
			continue
		}
		if s.Moment == nil {
			t.Fatalf("%s: no moment", at)
		}
		for _, seg := range s.Segments {
			if seg.FirstBlock < 0 || seg.FirstBlock+seg.NumBlocks > s.Blocks.Len() || seg.Device >= len(s.Devices) {
				t.Fatalf("%s: segment %+v of %d blocks", at, seg, s.Blocks.Len())
			}
		}
	}
	s, err := Decode("file", bytes.NewReader(b), int64(len(b)), Options{Timeline: true})
	if err != nil {
		return // which other targets look at
	}
	for _, line := range s.Timelines {
		last := int64(0)
		for _, l := range line.Lives {
			if l.Size < 0 || l.Born < last || l.Born > line.Events || l.Died != 0 && (l.Died < l.Born || l.Died > line.Events) {
				t.Fatalf("%+v of %d events, after one of event %d", l, line.Events, last)
			}
			last = l.Born
		}
		for _, bin := range line.Bins {
			if bin.Live < 0 || bin.Live > line.Peak || bin.Reserved < 0 || bin.Folded < 0 {
				t.Fatalf("%+v, with a peak of %s", bin, line.Peak)
			}
		}
	}
}

// FuzzContainer looks for panics and for errors that are not of the one type.
func FuzzContainer(f *testing.F) {
	for _, pattern := range []string{"*.zip", "*.gz", "*.html", "*.old"} {
		for _, name := range seedNames(f, pattern) {
			f.Add(seed(f, name))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Decode("file", bytes.NewReader(b), int64(len(b)), Options{})
		var refused *snapshot.FormatError
		if (s == nil) == (err == nil) || err != nil && !errors.As(err, &refused) {
			t.Fatalf("%v, %T: %v", s, err, err)
		}
		if s != nil && !Detect(b) {
			t.Fatal("a file is read but not detected")
		}
	})
}
