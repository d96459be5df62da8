package cause

import (
	"slices"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

func TestNamesAreSplitIntoWords(t *testing.T) {
	for name, want := range map[string]string{
		"modelCache.byKey[].value":       "model cache by key value",
		"register_forward_hook":          "register forward hook",
		"(*AUROC).Update":                "auroc update",
		"EMACopy":                        "ema copy",
		"workload.newPlans.func2":        "workload new plans func2",
		"torch::autograd::Engine":        "torch autograd engine",
		"__init__":                       "init",
		"":                               "",
		"größeÄndern":                    "größe ändern",
		"std::vector<at::Tensor>::clone": "std vector at tensor clone",
	} {
		if got := strings.Join(wordsOf(name), " "); got != want {
			t.Errorf("%q gives %q, want %q", name, got, want)
		}
	}
}

func TestTermsAreFoundInTheirCommonForms(t *testing.T) {
	for _, c := range []struct {
		name string
		term string
		want bool
	}{
		{"log_hooks", "hook", true},
		{"hookedNet", "hook", true},
		{"caching", "cache", true},
		{"copies", "copy", true},
		{"AllGather", "all gather", true},
		{"allgather_base", "all gather", true},
		{"gather_all", "all gather", false},
		{"logits", "log", false},
		{"catalogue", "cat", false},
		{"toString", "to", true},
		{"tod", "to", false},
		{"states", "state", true},
	} {
		if got := names(wordsOf(c.name), []string{c.term}); got != c.want {
			t.Errorf("%q in %q: %t, want %t", c.term, c.name, got, c.want)
		}
	}
}

func TestFoldersCountInLibrariesOnly(t *testing.T) {
	f := snapshot.Frame{File: `C:\me\logs\metric\step.py`}
	if got := fileWords(f, false); !slices.Equal(got, []string{"step"}) {
		t.Errorf("the user's file gives %q", got)
	}
	f.File = "/x/site-packages/torchmetrics/text/bleu.py"
	if got := fileWords(f, true); !slices.Contains(got, "torchmetrics") || !slices.Contains(got, "bleu") {
		t.Errorf("the library's file gives %q", got)
	}
}

func TestPathsOfGosPackagesTellNothing(t *testing.T) {
	f := snapshot.Frame{Function: "github.com/me/metrics-server/handler.(*Writer[go.shape.github.com/me/hook.Row]).Get", File: "/home/me/handler/get.go"}
	for _, c := range []struct {
		library bool
		want    string
	}{{false, "writer go shape github com me hook row get"}, {true, "handler writer go shape github com me hook row get"}} {
		if got := strings.Join(ownWords(f, c.library), " "); got != c.want {
			t.Errorf("library %t: %q, want %q", c.library, got, c.want)
		}
	}
	if got, want := place(snapshot.Frame{Function: "github.com/me/metrics-server/handler.Get.func1", File: "get.go"}), "Get.func1"; got != want {
		t.Errorf("the place is %q, want %q", got, want)
	}
}

func TestAMethodOfPythonsIsNamedWithItsClass(t *testing.T) {
	for function, want := range map[string]string{"Cache.__init__.<locals>.<listcomp>": "Cache.__init__", "update": "update", "AUROC.update": "AUROC.update"} {
		if got := place(snapshot.Frame{Function: function, File: "serve.py"}); got != want {
			t.Errorf("the place is %q, want %q", got, want)
		}
	}
}

func TestGosOwnPackagesTellNothing(t *testing.T) {
	for function, want := range map[string]bool{
		"compress/flate.NewWriter":            true,
		"net.maxListenerBacklog":              true,
		"bytes.(*Buffer).grow":                true,
		"main.newQueue":                       false,
		"github.com/me/queue.New":             false,
		"gopkg.in/cache%2ev2.(*Cache).Set":    false,
		"github.com/memdiag/memdiag/engine.F": false,
		"mem.(*Device).Alloc":                 false, // of the engine's own recordings
	} {
		s := Site{Headline: 1, Frames: []snapshot.Frame{{Function: function, File: "x.go"}, {Function: "main.main", File: "main.go"}}}
		if got := s.machinery(0); got != want {
			t.Errorf("%s: %t, want %t", function, got, want)
		}
	}
}

func TestJAXsWayIntoACallTellsNothing(t *testing.T) {
	const jax = "/v/lib/python3.10/site-packages/jax/_src/"
	s := Site{Headline: 3, Frames: []snapshot.Frame{
		{Function: "compile_or_get_cached", File: jax + "compiler.py"},
		{Function: "cache_miss", File: jax + "pjit.py"},
		{Function: "reraise_with_filtered_traceback", File: jax + "traceback_util.py"},
		{Function: "train", File: "/home/me/train.py"},
	}}
	for i, want := range []bool{false, true, true, false} {
		if got := s.machinery(i); got != want {
			t.Errorf("%s: %t, want %t", s.Frames[i].Function, got, want)
		}
	}
}
