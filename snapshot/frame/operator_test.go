package frame_test

import (
	"testing"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

func TestOperatorAndModule(t *testing.T) {
	of := func(functions ...string) []snapshot.Frame { // innermost first
		var out []snapshot.Frame
		for _, f := range functions {
			out = append(out, snapshot.Frame{Function: f})
		}
		return out
	}
	python := func(function string) snapshot.Frame {
		return snapshot.Frame{Function: function, File: "model.py", Line: 3}
	}
	for _, c := range []struct {
		name, operator, module string
		frames                 []snapshot.Frame
	}{
		{"the outermost of operators, and all modules", "aten::linear", "Net_0.Linear_1", of("aten::empty", "aten::addmm", "aten::linear", "nn.Module: Linear_1", "nn.Module: Net_0")},
		{"a node of the backward pass", "AddmmBackward0", "", of("aten::mm", "autograd::engine::evaluate_function: AddmmBackward0")},
		{"a native stack", "aten::mm", "", of("at::native::empty_cuda", "at::_ops::empty::call(c10::SymInt)", "at::_ops::mm::call(at::Tensor const&, at::Tensor const&)")},
		{"a native node", "MmBackward0", "", of("at::_ops::mm::call(at::Tensor const&)", "torch::autograd::generated::MmBackward0::apply(std::vector<at::Tensor>&&)")},
		{"methods that say their class", "", "Net.Block", []snapshot.Frame{python("Block.forward"), python("Block.forward"), python("Net.forward"), python("main")}},
		{"a function that is called forward", "", "", []snapshot.Frame{python("forward")}},
		{"nothing", "", "", nil},
	} {
		if got := frame.Operator(c.frames); got != c.operator {
			t.Errorf("%s: operator %q, want %q", c.name, got, c.operator)
		}
		if got := frame.Module(c.frames); got != c.module {
			t.Errorf("%s: module %q, want %q", c.name, got, c.module)
		}
	}
}
