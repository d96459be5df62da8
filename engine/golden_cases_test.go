package engine_test

import (
	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/nn"
)

type list = []*engine.Tensor

// goldenCase computes on the engine what golden.py computes under the same name.
type goldenCase struct {
	of string // what it is a case of, names parted by spaces
	f  func(o engine.Ops, in list) list
}

func of(names string, f func(o engine.Ops, in list) *engine.Tensor) goldenCase {
	return goldenCase{names, func(o engine.Ops, in list) list { return list{f(o, in)} }}
}

func unary(name string, f func(engine.Ops, *engine.Tensor) *engine.Tensor) goldenCase {
	return of(name, func(o engine.Ops, in list) *engine.Tensor { return f(o, in[0]) })
}

func binary(name string, f func(engine.Ops, *engine.Tensor, *engine.Tensor) *engine.Tensor) goldenCase {
	return of(name, func(o engine.Ops, in list) *engine.Tensor { return f(o, in[0], in[1]) })
}

var goldenWindow = engine.Window{Kernel: [2]int{3, 2}, Stride: [2]int{2, 1}, Pad: [2]int{1, 1}}

var goldenDraw = engine.Draw{Key: 0x123456789ABCDEF, Stream: 3<<32 | 7}

var goldenCases = map[string]goldenCase{
	"neg":              unary("Ops.Neg", engine.Ops.Neg),
	"exp":              unary("Ops.Exp", engine.Ops.Exp),
	"log":              unary("Ops.Log", engine.Ops.Log),
	"sqrt":             unary("Ops.Sqrt", engine.Ops.Sqrt),
	"recip":            unary("Ops.Recip", engine.Ops.Recip),
	"abs, with a 0":    unary("Ops.Abs", engine.Ops.Abs),
	"relu, with a 0":   unary("Ops.ReLU", engine.Ops.ReLU),
	"tanh":             unary("Ops.Tanh", engine.Ops.Tanh),
	"sigmoid":          unary("Ops.Sigmoid", engine.Ops.Sigmoid),
	"log-softmax":      unary("Ops.LogSoftmax", engine.Ops.LogSoftmax),
	"copy":             unary("Ops.Copy", engine.Ops.Copy),
	"softmax":          unary("engine.Softmax", engine.Softmax),
	"upsample":         unary("engine.Upsample2x", engine.Upsample2x),
	"max, with equals": binary("Ops.Max", engine.Ops.Max),
	"pow":              binary("Ops.Pow", engine.Ops.Pow),
	"less":             binary("Ops.Less", engine.Ops.Less),
	"equal":            binary("Ops.Equal", engine.Ops.Equal),
	"matmul":           binary("Ops.MatMul", engine.Ops.MatMul),
	"gather":           binary("Ops.Gather", engine.Ops.Gather),

	"add with a stretched row":       binary("Ops.Add", engine.Ops.Add),
	"sub with a stretched column":    binary("Ops.Sub", engine.Ops.Sub),
	"mul with a stretched row":       binary("Ops.Mul", engine.Ops.Mul),
	"div by a stretched row":         binary("Ops.Div", engine.Ops.Div),
	"matmul of a matrix and a batch": binary("Ops.MatMul", engine.Ops.MatMul),
	"matmul of stretched batches":    binary("Ops.MatMul", engine.Ops.MatMul),

	"where":      of("Ops.Where", func(o engine.Ops, in list) *engine.Tensor { return o.Where(in[0], in[1], in[2]) }),
	"sum of all": of("Ops.Sum", func(o engine.Ops, in list) *engine.Tensor { return o.Sum(in[0]) }),
	"sum over the first and last axis": of("Ops.Sum", func(o engine.Ops, in list) *engine.Tensor {
		return o.Sum(in[0], 0, -1)
	}),
	"max over an axis, with equals": of("Ops.MaxOver", func(o engine.Ops, in list) *engine.Tensor { return o.MaxOver(in[0], 1) }),
	"argmax":                        of("Ops.ArgMax", func(o engine.Ops, in list) *engine.Tensor { return o.ArgMax(in[0], 1) }),
	"matmul of a transpose": of("Ops.MatMul", func(o engine.Ops, in list) *engine.Tensor {
		return o.MatMul(o.Permute(in[0], 0, 2, 1), in[1])
	}),
	"detach": of("Ops.Detach", func(o engine.Ops, in list) *engine.Tensor { return o.Mul(o.Detach(in[0]), in[0]) }),
	"reshape of a permutation": of("Ops.Reshape", func(o engine.Ops, in list) *engine.Tensor {
		return o.Reshape(o.Permute(in[0], 2, 0, 1), 8, 3)
	}),
	"permute": of("Ops.Permute", func(o engine.Ops, in list) *engine.Tensor { return o.Permute(in[0], 2, 0, 1) }),
	"slice":   of("Ops.Slice", func(o engine.Ops, in list) *engine.Tensor { return o.Slice(in[0], 1, 1, 3) }),
	"expand":  of("Ops.Expand", func(o engine.Ops, in list) *engine.Tensor { return o.Expand(in[0], 4, 2, 3) }),
	"concat":  of("Ops.Concat", func(o engine.Ops, in list) *engine.Tensor { return o.Concat(1, in[0], in[1], in[0]) }),
	"assign to a slice": of("Ops.Assign", func(o engine.Ops, in list) *engine.Tensor {
		o.Assign(o.Slice(in[0], 1, 1, 3), in[1])
		return in[0]
	}),
	"scatter-add": of("Ops.ScatterAdd", func(o engine.Ops, in list) *engine.Tensor { return o.ScatterAdd(in[0], in[1], 5) }),
	"conv2d":      of("Ops.Conv2d", func(o engine.Ops, in list) *engine.Tensor { return o.Conv2d(in[0], in[1], goldenWindow) }),
	"conv2d of single pixels": of("Ops.Conv2d", func(o engine.Ops, in list) *engine.Tensor {
		return o.Conv2d(in[0], in[1], engine.Square(1, 1, 0))
	}),
	"unfold": of("Ops.Unfold", func(o engine.Ops, in list) *engine.Tensor { return o.Unfold(in[0], goldenWindow) }),
	"fold":   of("Ops.Fold", func(o engine.Ops, in list) *engine.Tensor { return o.Fold(in[0], goldenWindow, 3, 5, 4) }),
	"rand":   of("Ops.Rand", func(o engine.Ops, _ list) *engine.Tensor { return o.Rand(goldenDraw, 10) }),

	"dropout":        of("engine.Dropout", func(o engine.Ops, in list) *engine.Tensor { return engine.Dropout(o, in[0], 0.3, goldenDraw) }),
	"scale":          of("engine.Scale", func(o engine.Ops, in list) *engine.Tensor { return engine.Scale(o, in[0], 0.375) }),
	"shift":          of("engine.Shift", func(o engine.Ops, in list) *engine.Tensor { return engine.Shift(o, in[0], 0.375) }),
	"mean over axes": of("engine.Mean", func(o engine.Ops, in list) *engine.Tensor { return engine.Mean(o, in[0], 0, 2) }),
	"sum to a shape": of("engine.SumTo", func(o engine.Ops, in list) *engine.Tensor {
		return engine.SumTo(o, in[0], engine.ShapeOf(3, 1))
	}),
	"moments": {"engine.Moments", func(o engine.Ops, in list) list {
		mean, variance := engine.Moments(o, in[0], 0, 2)
		return list{mean, variance}
	}},
	"layer norm": of("engine.LayerNorm", func(o engine.Ops, in list) *engine.Tensor {
		return engine.LayerNorm(o, in[0], in[1], in[2], 1e-3)
	}),
	"batch norm by running moments": of("engine.BatchNorm", func(o engine.Ops, in list) *engine.Tensor {
		return engine.BatchNorm(o, in[0], o.Reshape(in[1], 1, 3, 1, 1), o.Reshape(in[2], 1, 3, 1, 1), in[3], in[4], 1e-3)
	}),
	"batch norm by the batch's moments": {"engine.BatchNormMoments", func(o engine.Ops, in list) list {
		out, mean, variance := engine.BatchNormMoments(o, in[0], in[1], in[2], 1e-3)
		return list{out, mean, variance}
	}},
	"max pool of tiles": of("engine.MaxPool2d", func(o engine.Ops, in list) *engine.Tensor {
		return engine.MaxPool2d(o, in[0], engine.Square(2, 2, 0))
	}),
	"max pool of overlapping windows": of("engine.MaxPool2d", func(o engine.Ops, in list) *engine.Tensor {
		return engine.MaxPool2d(o, in[0], engine.Square(3, 1, 0))
	}),
	"max pool with a rest": of("engine.MaxPool2d", func(o engine.Ops, in list) *engine.Tensor {
		return engine.MaxPool2d(o, in[0], engine.Square(2, 2, 0))
	}),

	"cross entropy": of("engine.CrossEntropy", func(o engine.Ops, in list) *engine.Tensor {
		return engine.CrossEntropy(o, in[0], in[1], nil)
	}),
	"cross entropy with weights": of("engine.CrossEntropy", func(o engine.Ops, in list) *engine.Tensor {
		return engine.CrossEntropy(o, in[0], in[1], o.FromFloats([]float32{1, 0.5, 0, 2}, 4))
	}),
	"mean squared error, mean": loss("engine.MSE", engine.MSE, engine.Average),
	"mean squared error, sum":  loss("engine.MSE", engine.MSE, engine.Total),
	"mean squared error, none": loss("engine.MSE", engine.MSE, engine.Each),
	"l1, with equals, mean":    loss("engine.L1", engine.L1, engine.Average),
	"l1, with equals, sum":     loss("engine.L1", engine.L1, engine.Total),
	"l1, with equals, none":    loss("engine.L1", engine.L1, engine.Each),

	"linear layer": of("nn.Linear", func(o engine.Ops, in list) *engine.Tensor { return linear(in[1:]).Forward(o, in[0]) }),
	"conv2d layer": of("nn.Conv2d", func(o engine.Ops, in list) *engine.Tensor {
		return (&nn.Conv2d{Filters: in[1], Bias: in[2], Window: goldenWindow}).Forward(o, in[0])
	}),
	"layer norm layer": of("nn.LayerNorm", func(o engine.Ops, in list) *engine.Tensor { return layerNorm(in[1:]).Forward(o, in[0]) }),
	"embedding layer": of("nn.Embedding", func(o engine.Ops, in list) *engine.Tensor {
		return (&nn.Embedding{Table: in[1]}).Forward(o, in[0])
	}),
	"batch norm layer in training":   {"nn.BatchNorm2d", batchNorm(nn.Train)},
	"batch norm layer in evaluation": {"nn.BatchNorm2d", batchNorm(nn.Eval)},
	"rnn cell": of("nn.RNNCell", func(o engine.Ops, in list) *engine.Tensor {
		return (&nn.RNNCell{Input: linear(in[2:]), Hidden: linear(in[4:])}).Forward(o, in[0], in[1])
	}),
	"multi-head attention": of("nn.MultiHeadAttention", func(o engine.Ops, in list) *engine.Tensor {
		return attention(in[1:], false).Forward(o, in[0], nil)
	}),
	"causal multi-head attention": of("nn.MultiHeadAttention", func(o engine.Ops, in list) *engine.Tensor {
		return attention(in[1:], true).Forward(o, in[0], nil)
	}),
	"transformer block": of("nn.TransformerBlock", func(o engine.Ops, in list) *engine.Tensor {
		b := nn.TransformerBlock{
			Norm1: layerNorm(in[1:]), Attention: attention(in[3:], true),
			Norm2: layerNorm(in[11:]), Up: linear(in[13:]), Down: linear(in[15:]),
		}
		return b.Forward(o, in[0], nn.Train, nil)
	}),
}

type lossFunction = func(o engine.Ops, a, b *engine.Tensor, r engine.Reduction) *engine.Tensor

func loss(name string, f lossFunction, r engine.Reduction) goldenCase {
	return binary(name, func(o engine.Ops, a, b *engine.Tensor) *engine.Tensor { return f(o, a, b, r) })
}

func linear(in list) *nn.Linear { return &nn.Linear{Weight: in[0], Bias: in[1]} }

func layerNorm(in list) *nn.LayerNorm {
	return &nn.LayerNorm{Gain: in[0], Bias: in[1], Epsilon: 1e-5}
}

func attention(in list, causal bool) *nn.MultiHeadAttention {
	return &nn.MultiHeadAttention{
		Query: linear(in), Key: linear(in[2:]), Value: linear(in[4:]), Out: linear(in[6:]), Heads: 2, Causal: causal,
	}
}

func batchNorm(mode nn.Mode) func(o engine.Ops, in list) list {
	return func(o engine.Ops, in list) list {
		b := nn.BatchNorm2d{Gain: in[1], Bias: in[2], Mean: in[3], Variance: in[4], Momentum: 0.1, Epsilon: 1e-5}
		return list{b.Forward(o, in[0], mode), b.Mean, b.Variance}
	}
}
