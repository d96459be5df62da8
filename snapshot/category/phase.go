package category

import (
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// phase is the part of a training step in which a call of PyTorch's allocator was made.
type phase uint8

const (
	elsewhere  phase = iota // or not known
	loading                 // a data loader
	building                // a module is made, or moved to a device
	forward                 // of a module
	backward                // of autograd
	updating                // an optimizer
	exchanging              // a collective
	scratch                 // a library's workspace
	phases     = iota
)

// phaseOf reads a stack from its innermost frame on: a forward pass that checkpointing computes anew is below the backward pass that
// asks for it, and a closure below its optimizer.
func phaseOf(frames []snapshot.Frame) phase {
	found := elsewhere
	for i := range frames {
		switch p := phaseAt(frames, i); {
		case p == loading:
			return loading // whatever its transforms call
		case found == elsewhere:
			found = p
		}
	}
	return found
}

// phaseAt is the phase that one frame shows.
func phaseAt(frames []snapshot.Frame, i int) phase {
	f := frames[i]
	function := f.Function[strings.LastIndexByte(f.Function, '.')+1:]
	if !strings.HasSuffix(f.File, ".py") {
		return nativePhase(f.Function)
	}
	file, inTorch := torchFile(f.File)
	switch {
	case !inTorch:
		if function == "backward" && i+1 < len(frames) && strings.HasSuffix(frames[i+1].File, "torch/autograd/function.py") {
			return backward
		}
	case strings.HasPrefix(file, "utils/data/"):
		return loading
	case strings.HasPrefix(file, "optim/") && function != "zero_grad" && function != "eval":
		return updating
	case strings.HasPrefix(file, "autograd/graph.py"), strings.HasPrefix(file, "autograd/__init__.py"), file == "_tensor.py" && function == "backward":
		return backward
	case strings.HasPrefix(file, "distributed/tensor/"), strings.HasPrefix(file, "distributed/_tensor/"):
		// An operation on a DTensor is for what its caller is; the collectives that it calls are in other files.
	case strings.HasPrefix(file, "distributed/"):
		return exchanging
	case file == "nn/parameter.py", file == "nn/modules/module.py" && (function == "_apply" || function == "convert"),
		strings.HasPrefix(file, "nn/modules/") && (function == "__init__" || function == "reset_parameters"):
		return building
	case file == "nn/modules/module.py" && (function == "_call_impl" || function == "__call__"):
		return forward
	}
	return elsewhere
}

// torchFile is the path of a file of PyTorch's within it, be it installed or a clone.
func torchFile(path string) (file string, ok bool) {
	for _, at := range []string{"-packages/torch/", "/pytorch/torch/"} {
		if i := strings.LastIndex(path, at); i >= 0 {
			return path[i+len(at):], true
		}
	}
	return "", false
}

// nativePhase is the phase that a C++ function shows. Its name may include all its parameters.
func nativePhase(function string) phase {
	switch {
	case strings.Contains(function, "torch::autograd::generated::"), strings.Contains(function, "torch::autograd::AccumulateGrad"),
		strings.Contains(function, "torch::autograd::Engine::"), strings.Contains(function, "torch::autograd::PyNode::apply"):
		return backward
	case strings.HasPrefix(function, "at::cuda::getNewWorkspace"), strings.HasPrefix(function, "at::cuda::getCUDABlasLtWorkspace"):
		return scratch
	case strings.HasPrefix(function, "c10d::"):
		return exchanging
	}
	return elsewhere
}
