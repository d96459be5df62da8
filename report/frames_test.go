package report

import (
	"slices"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

func TestACallAndItsComprehensionAreOneLine(t *testing.T) {
	word := snapshot.Frame{Function: "Tokenizer.word", File: "train.py", Line: 15}
	main := snapshot.Frame{Function: "<module>", File: "train.py", Line: 38}
	for _, c := range []struct {
		name string
		all  bool
		want int
	}{{"in short", false, 2}, {"in full", true, 4}} {
		t.Run(c.name, func(t *testing.T) {
			lines := stackLines([]snapshot.Frame{word, word, main, main}, 0, c.all)
			if len(lines) != c.want || !lines[len(lines)-1].headline {
				t.Errorf("%+v; want %d lines, the last the head", lines, c.want)
			}
		})
	}
}

func TestAStackOfLibrariesIsNamedByItsLineOfPython(t *testing.T) {
	stack := []snapshot.Frame{
		{Function: "at::_ops::index_Tensor::call(at::Tensor const&)", Line: -1},
		{Function: "torch::autograd::THPVariable_getitem(_object*, _object*)", Line: -1},
		{Function: "on_train_batch_end", File: "/x/site-packages/lightning/progress.py", Line: 310},
		{Function: "PyMethod_New", Line: -1},
		{Function: "main", File: "/x/site-packages/lightning/train.py", Line: 140},
	}
	if got, want := placeOf(stack, "", -1), "/x/site-packages/lightning/progress.py:310"; got != want {
		t.Errorf("the place is %q, want %q", got, want)
	}
	var lines []string
	for _, l := range stackLines(stack, -1, false) {
		if l.frame != nil {
			lines = append(lines, l.frame.Function)
		}
	}
	if want := []string{"main", "on_train_batch_end", "torch::autograd::THPVariable_getitem(_object*, _object*)", "at::_ops::index_Tensor::call(at::Tensor const&)"}; !slices.Equal(lines, want) {
		t.Errorf("the stack is shown as %q", lines)
	}
}

func TestMemraysOwnFramesAreNoPlace(t *testing.T) {
	run := snapshot.Frame{Function: "_run_tracker", File: "/x/site-packages/memray/commands/run.py", Line: 83}
	frozen := snapshot.Frame{Function: "_compile_bytecode", File: "<frozen importlib._bootstrap_external>", Line: 729}
	library := snapshot.Frame{Function: "load", File: "/usr/lib/python3.11/json/__init__.py", Line: 9}
	for _, c := range []struct {
		frames []snapshot.Frame
		want   string
	}{
		{[]snapshot.Frame{frozen, run}, "<frozen importlib._bootstrap_external>:729"},
		{[]snapshot.Frame{frozen, library, run}, "/usr/lib/python3.11/json/__init__.py:9"},
		{[]snapshot.Frame{run}, "/x/site-packages/memray/commands/run.py:83"}, // what memray itself allocates
	} {
		if got := placeOf(c.frames, "", -1); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestAFrameIsShownByWhatIsKnownOfIt(t *testing.T) {
	for _, c := range []struct {
		name               string
		frame              snapshot.Frame
		beside, text       string
		short, whole, sure string
	}{
		{"all", snapshot.Frame{Function: "train", File: "/w/a.py", Line: 3}, "train", "/w/a.py:3 in train", "train (a.py:3)", "train (/w/a.py:3)", "train"},
		{"no function, as of tracemalloc", snapshot.Frame{File: "/w/a.py", Line: 3}, "", "/w/a.py:3", "a.py:3", "/w/a.py:3", "<unknown function>"},
		{"no place", snapshot.Frame{Function: "malloc", Line: -1}, "malloc", "malloc", "malloc", "malloc", "malloc"},
		{"a function of C++", snapshot.Frame{Function: "void Cache::put(int)", File: "c.cc", Line: 3}, "Cache::put", "c.cc:3 in Cache::put", "Cache::put (c.cc:3)", "void Cache::put(int) (c.cc:3)", "void Cache::put(int)"},
		{"an operator of brackets", snapshot.Frame{Function: "operator()", File: "c.cc", Line: 3}, "operator()", "c.cc:3 in operator()", "operator() (c.cc:3)", "operator() (c.cc:3)", "operator()"},
		{"one with parameters", snapshot.Frame{Function: "Less::operator()(int, int) const", File: "c.cc", Line: 3}, "Less::operator()", "c.cc:3 in Less::operator()", "Less::operator() (c.cc:3)", "Less::operator()(int, int) const (c.cc:3)", "Less::operator()(int, int) const"},
		{"nothing", snapshot.Frame{File: "??", Line: -1}, "<unknown function>", "<unknown function>", "<unknown function>", "<unknown function>", "<unknown function>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := c.frame
			got := []string{besidePlace(f), frameText(f, location(f)), shortLabel(f), frameLabel(f), function(f)}
			if want := []string{c.beside, c.text, c.short, c.whole, c.sure}; !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

func TestAProgramWithoutAFileIsNamedBeforeTheLibraryThatStartsItsThread(t *testing.T) {
	const thread = "/usr/lib/python3.11/threading.py"
	for _, file := range []string{"<string>", "<stdin>"} {
		stack := []snapshot.Frame{{Function: "w", File: file, Line: 4}, {Function: "Thread.run", File: thread, Line: 982}, {Function: "Thread._bootstrap", File: thread, Line: 1002}}
		if got, want := placeOf(stack, "", -1), file+":4"; got != want {
			t.Errorf("the place is %q, want %q", got, want)
		}
	}
}
