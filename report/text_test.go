package report

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

func TestText(t *testing.T) {
	unjudged := func(t testing.TB) *diff.Result {
		r := pyramidResult(t)
		for i := range r.Findings {
			if f := &r.Findings[i]; f.Verdict == diff.Leak {
				f.Verdict, f.Evidence = diff.Inconclusive, diff.Weak
				f.Rate.Bytes.Low, f.Rate.Bytes.High = -1024, 1<<20
				f.RunsOut, f.Cause = nil, nil
			}
		}
		return r
	}
	for _, c := range []struct {
		name, file string
		result     func(testing.TB) *diff.Result
		options    TextOptions
	}{
		{"a leak at 80 columns keeps the handbook's shape", "leak80.txt.golden", pyramidResult, TextOptions{Width: 80}},
		{"a leak on a wide page is not folded", "leak200.txt.golden", pyramidResult, TextOptions{Width: 200}},
		{"with all, every frame is listed", "all.txt.golden", pyramidResult, TextOptions{All: true}},
		{"colour adds sequences and nothing else", "color.txt.golden", pyramidResult, TextOptions{Width: 80, Color: true}},
		{"a rate that may be zero has a tilde", "inconclusive.txt.golden", unjudged, TextOptions{Width: 80}},
		{"hostile names are escaped", "hostile.txt.golden", attacked, TextOptions{Width: 80}},
		{"nothing live gives a report all the same", "empty.txt.golden", func(t testing.TB) *diff.Result { return analyzed(t, empty()) }, TextOptions{Width: 80}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.result(t)
			golden(t, c.file, rendered(t, func(b *bytes.Buffer) error { return Text(b, r, c.options) }))
		})
	}
}

func TestTextFitsItsWidthAndCutsNoPlace(t *testing.T) {
	r := pyramidResult(t)
	text := string(rendered(t, func(b *bytes.Buffer) error { return Text(b, r, TextOptions{Width: 80}) }))
	for line := range strings.Lines(text) {
		if n := visible(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	if want := "engine/workload/feature_pyramid.go:88"; strings.Count(text, want) < 2 {
		t.Errorf("the headline and the stack do not both name %s:\n%s", want, text)
	}
}

func TestTextColoursCarryNothing(t *testing.T) {
	r := pyramidResult(t)
	plain := rendered(t, func(b *bytes.Buffer) error { return Text(b, r, TextOptions{Width: 80}) })
	colour := string(rendered(t, func(b *bytes.Buffer) error { return Text(b, r, TextOptions{Width: 80, Color: true}) }))
	for _, code := range []string{"0", "1", "2", "1;31", "1;32", "1;33"} {
		colour = strings.ReplaceAll(colour, "\x1b["+code+"m", "")
	}
	if colour != string(plain) {
		t.Errorf("without its colours the report is\n%s\nnot\n%s", colour, plain)
	}
}

func TestAccountsSumToTheGrowth(t *testing.T) {
	for name, run := range map[string]*snapshot.Run{"pyramid": pyramid(), "pair": pair(hostile), "empty": empty()} {
		for _, rule := range []diff.Rule{diff.ByTrend, diff.ByHandbook} {
			r, err := diff.Analyze(run, rule)
			if err != nil {
				t.Fatal(err)
			}
			var sum diff.Tally
			sites := 0
			for _, a := range accounts(r) {
				sum = plus(sum, a.growth)
				sites += a.sites
			}
			if sum != r.Growth() || sites != len(r.Rows) {
				t.Errorf("%s by %s: accounts sum to %+v in %d sites, want %+v in %d", name, rule, sum, sites, r.Growth(), len(r.Rows))
			}
		}
	}
}

func TestPrintable(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain names stay", `C:\dir\a "b".py`, `C:\dir\a "b".py`},
		{"other scripts stay", "modèle_训练.py", "modèle_训练.py"},
		{"escape sequences show as text", "a\x1b[31mb", `a\x1b[31mb`},
		{"a new line shows as text", "a\nb", `a\nb`},
		{"the eight-bit sequence starter shows as text", "\u009b1m", `\u009b1m`},
		{"a right-to-left override shows as text", "a\u202eb", `a\u202eb`},
		{"a no-break space shows as text", "a\u00a0b", `a\u00a0b`},
		{"broken bytes show as text", "a\xff", `a\xff`},
		{"a replacement character shows as text", "\ufffd", "\ufffd"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Printable(c.in); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestShortFunction(t *testing.T) {
	for _, c := range []struct{ name, file, in, want string }{
		{"parameters of a native function go", "", "at::native::empty_cuda(c10::ArrayRef<long>, std::function<void (int)>)", "at::native::empty_cuda"},
		{"so does const behind them", "", "std::error_code::default_error_condition() const", "std::error_code::default_error_condition"},
		{"an unnamed namespace stays", "RegisterCUDA.cpp", "at::(anonymous namespace)::create_out(c10::ArrayRef<long>)", "at::(anonymous namespace)::create_out"},
		{"a call operator stays", "", "torch::autograd::Node::operator()(std::vector<at::Tensor>&&)", "torch::autograd::Node::operator()"},
		{"a return type void goes", "", "void f<int>(int)", "f<int>"},
		{"a Go receiver stays", "a.go", "workload.(*Pyramid).Forward", "workload.(*Pyramid).Forward"},
		{"a lone bracket stays", "", ")", ")"},
		{"a Python name stays", "a.py", "forward", "forward"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := shortFunction(snapshot.Frame{Function: c.in, File: c.file}); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestOperationNamesWhatWasComputed(t *testing.T) {
	native := func(names ...string) []snapshot.Frame {
		var frames []snapshot.Frame
		for _, n := range names {
			frames = append(frames, snapshot.Frame{Function: n, Line: -1})
		}
		return frames
	}
	for _, c := range []struct {
		name   string
		frames []snapshot.Frame
		want   int
	}{
		{"below the allocator and the dispatcher", native("c10::cuda::CUDACachingAllocator::malloc()", "at::detail::empty_cuda()",
			"at::_ops::bmm::redispatch()", "at::_ops::bmm::call(at::Tensor const&)", "PyObject_Call"), 3},
		{"the node of a backward pass comes first", native("c10::cuda::CUDACachingAllocator::malloc()", "at::_ops::bmm::call()",
			"torch::autograd::generated::BmmBackward0::apply(int)", "torch::autograd::Engine::thread_main()"), 2},
		{"nothing but plumbing gives the innermost", native("malloc()", "at::detail::empty_cuda()"), 0},
		{"in the engine, what called for the tensor", featureFrames, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := frame.Operation(c.frames); got != c.want {
				t.Errorf("frame %d, %s, want frame %d", got, c.frames[got].Function, c.want)
			}
		})
	}
}

func TestStackLinesOfALongStackKeepBothEndsAndTheHeadline(t *testing.T) {
	var frames []snapshot.Frame
	for i := range 60 {
		frames = append(frames, snapshot.Frame{Function: "f", File: "a.py", Line: i + 1})
	}
	lines := stackLines(frames, 30, false)
	shown, skipped, headline := 0, 0, false
	for _, l := range lines {
		if l.frame == nil {
			skipped += l.skipped
			continue
		}
		shown++
		headline = headline || l.headline && l.frame.Line == 31
	}
	if shown+skipped != 60 || shown > maxUserFrames+2 || !headline || lines[0].frame.Line != 60 || lines[len(lines)-1].frame.Line != 1 {
		t.Errorf("%d shown, %d skipped, headline %v, first %+v, last %+v", shown, skipped, headline, lines[0].frame, lines[len(lines)-1].frame)
	}
	if all := stackLines(frames, 30, true); len(all) != 60 {
		t.Errorf("all gives %d lines, want 60", len(all))
	}
}

func TestALongPathIsFoldedAtItsSlashes(t *testing.T) {
	path := "/home/somebody/projects/" + strings.Repeat("folder/", 15) + "train.py"
	for name, color := range map[string]bool{"plain": false, "in colour": true} {
		t.Run(name, func(t *testing.T) {
			r := pyramidResult(t)
			r.Findings[0].Rows[0].Frames[3].File = path
			text := string(rendered(t, func(b *bytes.Buffer) error { return Text(b, r, TextOptions{Width: 80, Color: color}) }))
			for line := range strings.Lines(text) {
				if n := visible(strings.TrimSuffix(line, "\n")); n > 80 {
					t.Errorf("%d columns: %q", n, line)
				}
			}
			if joined := strings.ReplaceAll(text, "/\n     ", "/"); !strings.Contains(joined, path+":88") {
				t.Errorf("the path does not come together again, with an indent of five:\n%s", text)
			}
		})
	}
}

func TestAnAbsurdlyLongNameLosesItsMiddle(t *testing.T) {
	long := strings.Repeat("n", 10_000_000)
	frames := []snapshot.Frame{{Function: "f" + long, File: long + ".py", Line: 7}}
	r := analyzed(t, pair(frames))
	for name, write := range map[string]func(*bytes.Buffer) error{
		"diff":  func(b *bytes.Buffer) error { return Text(b, r, TextOptions{Width: 80}) },
		"show":  func(b *bytes.Buffer) error { return Show(b, r.Last, TextOptions{}) },
		"flame": func(b *bytes.Buffer) error { return Flame(b, GrowthProfile(r), FlameOptions{}) },
		"plot":  func(b *bytes.Buffer) error { return Plot(b, SVG, r, PlotOptions{}) },
	} {
		t.Run(name, func(t *testing.T) {
			text := rendered(t, write)
			if len(text) > 50_000 || !bytes.Contains(text, []byte("…")) {
				t.Errorf("%d bytes", len(text))
			}
		})
	}
	if text := rendered(t, func(b *bytes.Buffer) error { return Folded(b, GrowthProfile(r)) }); !bytes.Contains(text, []byte(long)) {
		t.Error("a format for programs lacks the whole name")
	}
}

func TestShortenedKeepsBothEnds(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"a name of the usual length stays", strings.Repeat("é", maxName), strings.Repeat("é", maxName)},
		{"one character more goes with its neighbours", "a" + strings.Repeat("é", maxName-1) + "z", "a" + strings.Repeat("é", 198) + "…" + strings.Repeat("é", 198) + "z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := shortened(c.in); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestProgramsCompiledOnceAreOneLine: ten rows of 0 B stood in the way.
func TestProgramsCompiledOnceAreOneLine(t *testing.T) {
	var list []*diff.Finding
	for i := range 12 {
		row := &diff.Row{Frames: []snapshot.Frame{{Function: "f", File: "train.py", Line: i + 1}}, After: diff.Tally{Blocks: 1, Bytes: snapshot.Bytes(max(0, 2-i)) * snapshot.KiB}}
		list = append(list, &diff.Finding{Rows: []*diff.Row{row}, Verdict: diff.Bounded})
	}
	p := newPage(TextOptions{})
	p.elseGrew("What else grew", list, TextOptions{})
	text := string(rendered(t, func(b *bytes.Buffer) error { return p.writeTo(b) }))
	if !strings.Contains(text, "… 10 more call sites") || strings.Count(text, "train.py") != 2 {
		t.Error(text)
	}
}

func TestUnusedDevicesTakeOneLine(t *testing.T) {
	r := pyramidResult(t)
	for i := 1; i < 4; i++ {
		idle := snapshot.Device{Kind: snapshot.CUDA, Index: i, Limit: snapshot.Unknown, Meters: snapshot.Meters{Driver: snapshot.Unknown}}
		r.First.Devices, r.Last.Devices = append(r.First.Devices, idle), append(r.Last.Devices, idle)
	}
	r.First.Devices[2].Meters.Reserved = snapshot.MiB                           // it was used
	heap := snapshot.Device{Kind: snapshot.PythonHeap, Limit: snapshot.Unknown} // of which nothing can be done
	r.First.Devices, r.Last.Devices = append(r.First.Devices, heap), append(r.Last.Devices, heap)
	for name, c := range map[string]struct {
		write func(*bytes.Buffer) error
		want  string
	}{
		"diff": {func(b *bytes.Buffer) error { return Text(b, r, TextOptions{}) }, "\nno memory in use: cuda:1, cuda:3\n"},
		"show": {func(b *bytes.Buffer) error { return Show(b, r.Last, TextOptions{}) }, "\nno memory in use: cuda:1 to cuda:3\n"},
	} {
		t.Run(name, func(t *testing.T) {
			text := string(rendered(t, c.write))
			if !strings.Contains(text, c.want) || strings.Count(text, "cuda:1") != 1 {
				t.Errorf("not %q in\n%s", c.want, text)
			}
		})
	}
}

func TestDurationsHaveThreeDigits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", 1500: "1.50 µs", 195_076 * time.Microsecond: "195 ms", 999_600 * time.Microsecond: "1.00 s",
		29_712_345 * time.Microsecond: "29.7 s", 90 * time.Minute: "1.50 h",
	} {
		if got := duration(d); got != want {
			t.Errorf("%v is %q, want %q", int64(d), got, want)
		}
	}
}

func TestAnEnlargedBlockIsNotSaidToHaveFreedNone(t *testing.T) {
	for _, c := range []struct {
		shape diff.Shape
		want  string
	}{
		{diff.Steady, "and still alive"},
		{diff.BytesOnly, "and still alive; the smaller block before it was freed"},
		{diff.Doubling, "and still alive; the smaller block before it was freed"},
	} {
		if got := fate(&diff.Finding{Shape: c.shape}); got != c.want {
			t.Errorf("%q: %q; want %q", c.shape, got, c.want)
		}
	}
}
