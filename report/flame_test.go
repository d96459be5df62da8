package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

func TestFlame(t *testing.T) {
	for _, c := range []struct {
		name, file string
		profile    func(testing.TB) *Profile
		options    FlameOptions
	}{
		{"growth is red and shrinkage blue", "growth.svg.golden", func(t testing.TB) *Profile { return GrowthProfile(pyramidResult(t)) }, FlameOptions{}},
		{"one snapshot shows what is live", "live.svg.golden", func(t testing.TB) *Profile { return LiveProfile(last(pyramid())) }, FlameOptions{Title: "live"}},
		{"beyond the limit calls are folded", "folded.svg.golden", func(t testing.TB) *Profile { return GrowthProfile(pyramidResult(t)) }, FlameOptions{MaxBoxes: 6}},
		{"hostile names are text", "hostile.svg.golden", func(t testing.TB) *Profile { return GrowthProfile(attacked(t)) }, FlameOptions{Title: "a\x1b</svg>"}},
		{"rates are grey where they may be zero", "rate.svg.golden", func(t testing.TB) *Profile {
			p := RateProfile(pyramidResult(t))
			for i := range p.Samples {
				p.Samples[i].Noise = p.Samples[i].Verdict != diff.Leak
			}
			return p
		}, FlameOptions{}},
		{"nothing live is an empty picture", "empty.svg.golden", func(t testing.TB) *Profile { return GrowthProfile(analyzed(t, empty())) }, FlameOptions{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := rendered(t, func(b *bytes.Buffer) error { return Flame(b, c.profile(t), c.options) })
			golden(t, c.file, got)
			if n := len(elements(t, got, "script")); n != 1 {
				t.Errorf("%d scripts, want ours alone", n)
			}
		})
	}
}

func TestFlameSaysWhyItIsEmpty(t *testing.T) {
	for _, c := range []struct {
		profile Profile
		want    string
	}{
		{Profile{}, "nothing is live"},
		{Profile{Growth: true}, "no stack grew or shrank"},
		{Profile{Growth: true, PerUnit: "step"}, "no stack grows or shrinks after warm-up"},
	} {
		if got := flameSubtitle(&c.profile, 0, false); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// elements parses a document and returns the attributes of all elements of a name.
func elements(t *testing.T, document []byte, name string) []map[string]string {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(document))
	var out []map[string]string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == name {
			attributes := make(map[string]string)
			for _, a := range e.Attr {
				attributes[a.Name.Local] = a.Value
			}
			out = append(out, attributes)
		}
	}
}

// Every box is exactly as wide as the boxes right below it: widths sum to the
// growth at each depth down to the ends of the stacks.
func TestFlameWidthsSum(t *testing.T) {
	for name, p := range map[string]*Profile{"pyramid": GrowthProfile(pyramidResult(t)), "wide": wide(3000)} {
		for _, limit := range []int{2, 3, 10, 500, 100_000} {
			tree := newFlameTree(p)
			left := tree.prune(limit)
			boxes := tree.layout()
			if len(boxes) > limit {
				t.Errorf("%s: %d boxes, limit %d", name, len(boxes), limit)
			}
			named, below := 0, make(map[int64]int64)
			for _, b := range boxes {
				below[b.depth] += b.weight
				if b.isFolding {
					named += b.smaller
				}
			}
			if named != left {
				t.Errorf("%s, limit %d: folds name %d calls, %d were left out", name, limit, named, left)
			}
			var want int64
			for i := range p.Samples {
				v := int64(p.Samples[i].Value().Bytes)
				want += max(v, -v)
			}
			if below[0] != want || below[1] != want {
				t.Errorf("%s, limit %d: widths %d and %d, want %d", name, limit, below[0], below[1], want)
			}
		}
	}
}

// A flamegraph used to have a row for each call, and to take time in the square of
// their number.
func TestFlameOfADeepStackIsBounded(t *testing.T) {
	deep := func(n int) []snapshot.Frame {
		frames := make([]snapshot.Frame, n)
		for i := range frames {
			frames[i] = snapshot.Frame{Function: fmt.Sprintf("f%d", i), File: "a.py", Line: i + 1}
		}
		return frames
	}
	for _, c := range []struct {
		name   string
		depth  int
		folded string // label of the innermost box
	}{
		{"as deep as is drawn", maxFlameDepth, "leak: f0 (a.py:1)"},
		{"one call deeper", maxFlameDepth + 1, "leak: (1 deeper)"},
		{"100,000 calls", 100_000, "leak: (99,500 deeper)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &Profile{Growth: true}
			for i := range 3 {
				frames := deep(c.depth)
				frames[c.depth-1].Line += i // three stacks that share nothing
				p.Samples = append(p.Samples, Sample{Frames: frames, Verdict: diff.Leak, After: diff.Tally{Blocks: 1, Bytes: 512}})
			}
			groups := elements(t, rendered(t, func(b *bytes.Buffer) error { return Flame(b, p, FlameOptions{}) }), "g")
			found := 0
			for _, g := range groups[1:] {
				if g["data-l"] == c.folded {
					found++
				}
				if d, _ := strconv.Atoi(g["data-d"]); d > maxFlameDepth+1 {
					t.Fatalf("a box in row %d", d)
				}
			}
			if found != 3 {
				t.Errorf("%d boxes %q, want 3", found, c.folded)
			}
		})
	}
}

func TestANarrowBoxDropsThePrefixBeforeItsName(t *testing.T) {
	p := &Profile{Growth: true}
	for i, size := range []snapshot.Bytes{860, 110, 30} {
		frames := []snapshot.Frame{{Function: "forward", File: "a.py", Line: i}}
		p.Samples = append(p.Samples, Sample{Frames: frames, Verdict: diff.Leak, After: diff.Tally{Blocks: 1, Bytes: size}})
	}
	text := string(rendered(t, func(b *bytes.Buffer) error { return Flame(b, p, FlameOptions{}) }))
	for _, want := range []string{">leak: forward (a.py)</text>", ">forward (a.py:1)</text>", ">for…</text>"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
}

func TestMemoryWithoutAStackHasAColourThatIsExplained(t *testing.T) {
	for name, c := range map[string]struct {
		profile *Profile
		want    bool
	}{
		"none of it": {LiveProfile(pair(featureFrames).Snapshots[1]), false},
		"some of it": {LiveProfile(last(pyramid())), true},
	} {
		t.Run(name, func(t *testing.T) {
			text := string(rendered(t, func(b *bytes.Buffer) error { return Flame(b, c.profile, FlameOptions{}) }))
			if got := strings.Contains(text, "sand has no recorded stack"); got != c.want || strings.Contains(text, "#e6d3a8") != c.want {
				t.Errorf("explained: %v, want %v", got, c.want)
			}
		})
	}
}

// A slow rate is a whole number in a profile, and what shrinks has the sign of that.
func TestRateProfile(t *testing.T) {
	r := pyramidResult(t)
	p := RateProfile(r)
	if len(p.Samples) != 2 || p.PerUnit != "step" { // all else stood still after warm-up
		t.Fatalf("%d samples for 1,000 %ss, want those of the leak and of the buffer", len(p.Samples), p.PerUnit)
	}
	leak, buffer := &p.Samples[0], &p.Samples[1]
	if want := snapshot.Bytes(rateScale * 512 * 1024); leak.Value().Bytes != want || leak.Noise {
		t.Errorf("the leak has %d for 1,000 steps, want %d, for sure", leak.Value().Bytes, want)
	}
	// It is given back once, half-way: that is no rate.
	if buffer.Value().Bytes >= 0 || buffer.Before.Bytes <= 0 || !buffer.Noise {
		t.Errorf("the buffer is %+v, want a loss that may be zero", buffer)
	}
	r = analyzed(t, pair(featureFrames))
	if p = RateProfile(r); len(p.Samples) != 1 || p.Samples[0].Value().Bytes != 102_400 {
		t.Errorf("of two snapshots: %+v", p.Samples)
	}
}

func TestFlameScriptGetsTheGeometryThatWasDrawn(t *testing.T) {
	p := GrowthProfile(pyramidResult(t))
	groups := elements(t, rendered(t, func(b *bytes.Buffer) error { return Flame(b, p, FlameOptions{}) }), "g")
	var total int64
	for _, g := range groups[1:] {
		if g["data-d"] == "1" {
			w, err := strconv.ParseInt(g["data-w"], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			total += w
		}
	}
	if want := int64(42 << 20); total != want { // 41 MiB grew, 1 MiB shrank
		t.Errorf("the first row is %d bytes wide, want %d", total, want)
	}
}

func TestFolded(t *testing.T) {
	golden(t, "growth.folded.golden", rendered(t, func(b *bytes.Buffer) error { return Folded(b, GrowthProfile(pyramidResult(t))) }))
	golden(t, "live.folded.golden", rendered(t, func(b *bytes.Buffer) error { return Folded(b, LiveProfile(last(pyramid()))) }))
	// speedscope takes all before the last space as the stack: a second figure would be a frame.
	for line := range strings.Lines(string(rendered(t, func(b *bytes.Buffer) error { return Folded(b, GrowthProfile(pyramidResult(t))) }))) {
		if !regexp.MustCompile(`^\S.*\) [1-9]\d*\n$`).MatchString(line) {
			t.Errorf("%q is not a stack and one figure above zero", line)
		}
	}
	text := string(rendered(t, func(b *bytes.Buffer) error { return Folded(b, GrowthProfile(attacked(t))) }))
	if strings.Count(text, "\n") != 1 || strings.Count(text, ";") != 1 {
		t.Errorf("a hostile stack of two frames is not one line with one semicolon: %q", text)
	}
}

func last(run *snapshot.Run) *snapshot.Snapshot { return run.Snapshots[len(run.Snapshots)-1] }

// wide is a growth profile of n stacks, twelve calls deep.
func wide(n int) *Profile {
	p := &Profile{Growth: true, Title: "wide"}
	for i := range n {
		var frames []snapshot.Frame
		for d := range 12 {
			frames = append(frames, snapshot.Frame{Function: fmt.Sprintf("f%d", i>>d), File: "a.py", Line: d + 1})
		}
		p.Samples = append(p.Samples, Sample{Frames: frames, After: diff.Tally{Blocks: 1, Bytes: snapshot.Bytes(512 * (i%97 + 1))}})
	}
	return p
}

func BenchmarkFlame(b *testing.B) {
	p := wide(20_000)
	b.ReportAllocs()
	for b.Loop() {
		if err := Flame(io.Discard, p, FlameOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

func TestLibrariesAreToldByTheirStack(t *testing.T) {
	native := snapshot.Frame{Function: "add", File: "/src/ext.cpp", Line: 3}
	tree := newFlameTree(&Profile{Samples: []Sample{
		{After: diff.Tally{Blocks: 1, Bytes: 1}, Frames: []snapshot.Frame{native, {Function: "main", File: "train.py", Line: 1}}},
		{After: diff.Tally{Blocks: 1, Bytes: 1}, Frames: []snapshot.Frame{native, {Function: "start_thread", File: "/build/glibc-B3wQXB/glibc-2.31/nptl/pthread_create.c", Line: 477}}},
	}})
	for _, b := range tree.boxes {
		ext := strings.HasPrefix(b.name, "add")
		if want := strings.Contains(b.name, "start_thread") || ext && strings.Contains(b.parent.name, "main"); b.library != want {
			t.Errorf("%s below %s is taken for a library's: %t", b.name, b.parent.name, b.library)
		}
	}
}

// TestTheSearchKnowsWhatIsNotDrawn: what a picture folds is listed for its search, with widths
// that sum to those of the folds.
func TestTheSearchKnowsWhatIsNotDrawn(t *testing.T) {
	p := GrowthProfile(pyramidResult(t))
	whole, _ := newFlame(p, 0)
	whole.draw()
	if strings.Contains(whole.buf.String(), "<metadata") {
		t.Error("a picture of all calls lists some as not drawn")
	}
	f, left := newFlame(p, 7)
	f.draw()
	_, text, _ := strings.Cut(f.buf.String(), `<metadata class="hidden">`)
	text, _, _ = strings.Cut(text, "</metadata>")
	var hidden hiddenJSON
	if err := json.Unmarshal([]byte(html.UnescapeString(text)), &hidden); err != nil {
		t.Fatal(err)
	}
	if len(hidden.Boxes) != left || left == 0 || hidden.More {
		t.Errorf("%d calls are listed of %d", len(hidden.Boxes), left)
	}
	var listed, folded int64
	for i, b := range hidden.Boxes {
		if b[1] < 0 && -1-b[1] >= int64(i) {
			t.Errorf("box %d comes before its parent %d", i, -1-b[1])
		}
		if b[1] >= 0 {
			listed += b[2]
		}
		if hidden.Names[b[0]] == "" {
			t.Errorf("box %d has no name", i)
		}
	}
	for _, b := range f.boxes {
		if b.isFolding {
			folded += b.weight
		}
	}
	if listed != folded {
		t.Errorf("%d bytes are listed below drawn calls, the folds have %d", listed, folded)
	}
}

func TestALongHeadingIsFolded(t *testing.T) {
	p := GrowthProfile(pyramidResult(t))
	got := string(rendered(t, func(b *bytes.Buffer) error {
		return Flame(b, p, FlameOptions{Title: strings.Repeat("a long title ", 20) + strings.Repeat("x", 200)})
	}))
	lines := regexp.MustCompile(`class="(title|sub)">([^<]*)<`).FindAllStringSubmatch(got, -1)
	if len(lines) < 4 {
		t.Errorf("%d lines", len(lines))
	}
	for _, l := range lines {
		if limit := map[string]int{"title": titleRunes, "sub": subtitleRunes}[l[1]]; utf8.RuneCountInString(html.UnescapeString(l[2])) > limit {
			t.Errorf("%q is longer than %d", l[2], limit)
		}
	}
}

// TestNoStripIsLeftForRowsThatNobodySees: the deepest stack may be a thousandth of a pixel wide.
func TestNoStripIsLeftForRowsThatNobodySees(t *testing.T) {
	frames := func(n int) []snapshot.Frame {
		var out []snapshot.Frame
		for i := range n {
			out = append(out, snapshot.Frame{Function: fmt.Sprintf("f%d_%d", n, i), File: "a.py", Line: 1})
		}
		return out
	}
	p := &Profile{Samples: []Sample{
		{Frames: frames(3), After: diff.Tally{Blocks: 1, Bytes: snapshot.GiB}},
		{Frames: frames(100), After: diff.Tally{Blocks: 1, Bytes: 512}},
	}}
	f, _ := newFlame(p, 0)
	if got, want := f.height(0), int64(4*rowHeight); got != want {
		t.Errorf("the picture is %d high, want %d", got, want)
	}
	p.Samples[1].After.Bytes = snapshot.GiB
	if f, _ = newFlame(p, 0); f.height(0) != 101*rowHeight {
		t.Errorf("the picture of a deep stack is %d high", f.height(0))
	}
}
