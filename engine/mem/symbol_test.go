package mem

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/memdiag/memdiag/snapshot"
)

const module = "github.com/memdiag/memdiag"

// at is a call as the runtime would name it in a checkout at /src.
func at(function, file string, line int) call {
	return call{importPath(function), function, file, line}
}

func TestFramesAreNamedTheSameInEveryCheckout(t *testing.T) {
	for _, c := range []struct {
		name     string
		function string
		file     string
		root     string
		want     snapshot.Frame
	}{
		{
			"a method", module + "/engine/workload.(*Pyramid).Forward", "/src/engine/workload/feature_pyramid.go", "/src",
			snapshot.Frame{Function: "workload.(*Pyramid).Forward", File: "engine/workload/feature_pyramid.go"},
		},
		{
			"a closure of a generic function whose argument has a path", module + "/engine/nn.Each[" + module + "/engine.T].func1", "/src/engine/nn/each.go", "/src",
			snapshot.Frame{Function: "nn.Each.func1", File: "engine/nn/each.go"},
		},
		{
			"a method of a generic type", module + "/engine/nn.(*List[...]).Add", "/src/engine/nn/list.go", "/src",
			snapshot.Frame{Function: "nn.(*List).Add", File: "engine/nn/list.go"},
		},
		{
			"package main, where the checkout is known", "main.run", "/src/cmd/memdiag/main.go", "/src",
			snapshot.Frame{Function: "main.run", File: "cmd/memdiag/main.go"},
		},
		{
			"package main, where it is not", "main.run", "/src/cmd/memdiag/main.go", "",
			snapshot.Frame{Function: "main.run", File: "main.go"},
		},
		{
			"a package of the standard library", "sort.Slice", "/usr/local/go/src/sort/slice.go", "/src",
			snapshot.Frame{Function: "sort.Slice", File: "sort/slice.go"},
		},
		{
			"a path with a dot in its last element", "gopkg.in/yaml%2ev3.(*Decoder).Decode", "/go/pkg/mod/gopkg.in/yaml.v3@v3.0.1/yaml.go", "/src",
			snapshot.Frame{Function: "yaml.v3.(*Decoder).Decode", File: "gopkg.in/yaml.v3/yaml.go"},
		},
		{
			"an external test", module + "/engine/nn_test.TestLinear", "/src/engine/nn/linear_test.go", "/src",
			snapshot.Frame{Function: "nn_test.TestLinear", File: "engine/nn/linear_test.go"},
		},
		{
			"the module's root package", module + ".Version", "/src/version.go", "/src",
			snapshot.Frame{Function: "memdiag.Version", File: "version.go"},
		},
		{
			"another module with a like name", module + "-extra/loop.Run", "/other/loop/run.go", "/src",
			snapshot.Frame{Function: "loop.Run", File: module + "-extra/loop/run.go"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			call := at(c.function, c.file, 0)
			got := snapshot.Frame{Function: call.shortName(), File: call.shortFile(module, c.root)}
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestTheCheckoutIsToldFromFramesWithAPath(t *testing.T) {
	for _, c := range []struct {
		name  string
		calls []call
		want  string
	}{
		{"a file in a folder of the module", []call{at("main.run", "/a/cmd/x/main.go", 1), at(module+"/engine/mem.f", "/a/engine/mem/f.go", 1)}, "/a"},
		{"a file built with -trimpath", []call{at(module+"/engine/mem.f", module+"/engine/mem/f.go", 1)}, module},
		{"a file in the module's root", []call{at(module+".f", "/a/f.go", 1)}, "/a"},
		{"only package main", []call{at("main.run", "/a/cmd/x/main.go", 1)}, ""},
		{"another module with a like name", []call{at(module+"2/x.f", "/b/x/f.go", 1)}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := moduleRoot(c.calls, module); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestTrimKeepsTheProgramAndTheOperation(t *testing.T) {
	const engine = module + "/engine"
	for _, c := range []struct {
		name string
		in   []string
		want []string
	}{
		{
			"the outermost of the engine's innermost frames names the operation",
			[]string{
				engine + "/mem.(*Device).here", engine + "/mem.(*Device).Alloc", engine + ".(*Eager).alloc", engine + ".(*Eager).MatMul",
				engine + "/autodiff.(*Ops).MatMul", engine + "/nn.(*Linear).Forward", engine + "/workload.(*Pyramid).Forward", "main.main", "runtime.main", "runtime.goexit",
			},
			[]string{engine + "/autodiff.(*Ops).MatMul", engine + "/nn.(*Linear).Forward", engine + "/workload.(*Pyramid).Forward", "main.main"},
		},
		{
			"plumbing further out goes entirely",
			[]string{engine + ".(*Eager).Add", engine + "/train.step", engine + ".Run.func1", engine + ".Run", engine + "/train.Loop"},
			[]string{engine + ".(*Eager).Add", engine + "/train.step", engine + "/train.Loop"},
		},
		{
			"a program that allocates by itself is not plumbing",
			[]string{engine + "/mem.(*Device).Alloc", engine + "/workload.hoard", engine + ".Run", engine + "/workload.(*L30).Step"},
			[]string{engine + "/workload.hoard", engine + "/workload.(*L30).Step"},
		},
		{
			"the command line and all outside it goes",
			[]string{engine + ".(*Eager).Add", engine + "/workload.(*L30).Step", "main.newRecord.func1", "github.com/spf13/cobra.(*Command).execute", "main.run", "main.main"},
			[]string{engine + ".(*Eager).Add", engine + "/workload.(*L30).Step", "main.newRecord.func1"},
		},
		{
			"the test runner goes, other packages with a like name stay",
			[]string{engine + "/workload_test.TestStep", "runtimes.Run", "testing.tRunner", "runtime/debug.X"},
			[]string{engine + "/workload_test.TestStep", "runtimes.Run"},
		},
		{
			"a stack of nothing else is kept whole",
			[]string{engine + "/mem.(*Device).Alloc", engine + "/mem.TestX", "testing.tRunner"},
			[]string{engine + "/mem.(*Device).Alloc", engine + "/mem.TestX", "testing.tRunner"},
		},
		{
			"plumbing alone keeps its outermost frame",
			[]string{engine + ".(*Eager).alloc", engine + ".TestAdd", "testing.tRunner"},
			[]string{engine + ".TestAdd"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var calls []call
			for _, f := range c.in {
				calls = append(calls, at(f, "x.go", 1))
			}
			var got []string
			for _, k := range trim(calls, engine+"/mem") {
				got = append(got, k.function)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestAnInlinedLiteralIsOfThePackageOfItsFile(t *testing.T) {
	const root = "/src/memdiag"
	c := call{path: "github.com/memdiag/memdiag/engine/workload", function: "github.com/memdiag/memdiag/engine/workload.(*detection).Step.func1.(*SGD).Step.1", file: root + "/engine/optim/sgd.go"}
	c.settle("github.com/memdiag/memdiag", root)
	if got := c.shortFile("github.com/memdiag/memdiag", root); got != "engine/optim/sgd.go" {
		t.Errorf("the file is %s", got)
	}
}

func TestTheEnginesInlinedLiteralsAreItsOwnInOtherModules(t *testing.T) {
	c := call{path: "example.com/more", function: "example.com/more.TestHeadline.Scale.func1", file: ownRoot() + "/engine/compose.go"}
	c.settle("example.com/more", "/src/more")
	c.settle(ownModule, ownRoot())
	if got := c.shortFile("example.com/more", "/src/more"); got != "github.com/memdiag/memdiag/engine/compose.go" {
		t.Errorf("the file is %s", got)
	}
}
