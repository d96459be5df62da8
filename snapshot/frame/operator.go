package frame

import (
	"slices"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// Operator is the PyTorch operator that a stack's program called, such as "aten::linear", or the node of a backward pass, such as
// "AddmmBackward0"; "" if no frame names one. If operators call one another, it is the outermost.
func Operator(frames []snapshot.Frame) string {
	for _, f := range slices.Backward(frames) {
		if name := operatorOf(f); name != "" {
			return name
		}
	}
	return ""
}

func operatorOf(f snapshot.Frame) string {
	if node, is := strings.CutPrefix(f.Function, "autograd::engine::evaluate_function: "); is { // of torch.profiler
		return node
	}
	if f.File == "" && strings.HasPrefix(f.Function, "aten::") {
		return f.Function
	}
	name := WithoutParameters(f)
	if op, is := strings.CutPrefix(name, "at::_ops::"); is {
		op, _, _ = strings.Cut(op, "::")
		return "aten::" + op
	}
	if node, is := strings.CutSuffix(name, "::apply"); is && strings.Contains(node, "Backward") {
		return node[strings.LastIndex(node, ":")+1:]
	}
	return ""
}

// Module is the path of the modules whose forward passes are in a stack, such as "Net.Block.Linear", the outermost first; "" if no
// frame names one.
func Module(frames []snapshot.Frame) string {
	var path []string
	for _, f := range slices.Backward(frames) {
		name, is := strings.CutPrefix(f.Function, "nn.Module: ") // of torch.profiler
		if !is {
			name, is = strings.CutSuffix(f.Function, ".forward")
			is = is && isScript(f.File)
			name = name[strings.LastIndex(name, ".")+1:]
		}
		if is && name != "" && (len(path) == 0 || path[len(path)-1] != name) {
			path = append(path, name)
		}
	}
	return strings.Join(path, ".")
}
