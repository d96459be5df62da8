package cpu

import (
	"math"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/cpu/vec"
)

func (k *kernels) Fill(dst engine.View, value float32) {
	d := words[float32](dst)
	k.run(nest(dst.Shape, dst.Strides), func(n int, at, step [operands]int) {
		if step[0] != 1 {
			for i := range n {
				d[at[0]+i*step[0]] = value
			}
			return
		}
		row := d[at[0]:][:n]
		for i := range row {
			row[i] = value
		}
	})
}

func (k *kernels) Rand(dst engine.View, d engine.Draw) {
	out := flat[float32](dst)
	k.split(len(out), 8, func(from, to int) {
		for i := from; i < to; i++ {
			out[i] = engine.DrawFloat(d, i)
		}
	})
}

func (k *kernels) Upload(dst engine.View, src []byte)   { copy(raw(dst), src) }
func (k *kernels) Download(dst []byte, src engine.View) { copy(dst, raw(src)) }
func (k *kernels) Copy(dst, src engine.View)            { copy(raw(dst), raw(src)) }

func (k *kernels) CopyStrided(dst, src engine.View) {
	d, s := words[int32](dst), words[int32](src)
	k.run(nest(dst.Shape, dst.Strides, src.Strides), func(n int, at, step [operands]int) {
		if step[0] == 1 && step[1] == 1 {
			copy(d[at[0]:][:n], s[at[1]:][:n])
			return
		}
		for i := range n {
			d[at[0]+i*step[0]] = s[at[1]+i*step[1]]
		}
	})
}

func (k *kernels) Unary(op engine.UnaryOp, dst, a engine.View) {
	d, x := words[float32](dst), words[float32](a)
	k.run(nest(dst.Shape, dst.Strides, a.Strides), func(n int, at, step [operands]int) {
		if step[0] == 1 && step[1] == 1 {
			unaryRow(op, d[at[0]:][:n], x[at[1]:][:n])
			return
		}
		if n < short {
			for i := range n {
				d[at[0]+i*step[0]] = unary(op, x[at[1]+i*step[1]])
			}
			return
		}
		var to, from [batch]float32
		for i := 0; i < n; i += batch {
			m := min(batch, n-i)
			unaryRow(op, to[:m], gathered(from[:m], x, at[1]+i*step[1], step[1]))
			scatter(d, at[0]+i*step[0], step[0], to[:m])
		}
	})
}

// batch is how many elements that do not lie side by side are brought together
// for the loops over rows.
const batch = 256

// short is how many elements are done one by one sooner than the room of a batch
// is cleared.
const short = 32

// gathered returns elements of x that lie step apart, side by side: x itself where
// they do already, else in the room given.
func gathered(room, x []float32, at, step int) []float32 {
	if step == 1 {
		return x[at:][:len(room)]
	}
	for i := range room {
		room[i] = x[at+i*step]
	}
	return room
}

// scatter lays elements of dst that lie step apart.
func scatter(dst []float32, at, step int, from []float32) {
	if step == 1 {
		copy(dst[at:], from)
		return
	}
	for i, v := range from {
		dst[at+i*step] = v
	}
}

// unaryRow has a loop of its own for each operation that is cheaper than the
// call to unary would be.
func unaryRow(op engine.UnaryOp, d, x []float32) {
	x = x[:len(d)]
	switch op {
	case engine.Neg:
		for i := range d {
			d[i] = -x[i]
		}
	case engine.Exp:
		vec.Exp(d, x)
	case engine.Tanh:
		vec.Tanh(d, x)
	case engine.Sigmoid:
		vec.Sigmoid(d, x)
	case engine.Recip:
		for i := range d {
			d[i] = 1 / x[i]
		}
	case engine.ReLU:
		vec.Rectify(d, x)
	case engine.Sqrt:
		for i := range d {
			d[i] = float32(math.Sqrt(float64(x[i]))) // one instruction
		}
	case engine.Abs:
		for i := range d {
			d[i] = math.Float32frombits(math.Float32bits(x[i]) &^ (1 << 31))
		}
	default:
		for i := range d {
			d[i] = unary(op, x[i])
		}
	}
}

func (k *kernels) Binary(op engine.BinaryOp, dst, a, b engine.View) {
	d, x, y := words[float32](dst), words[float32](a), words[float32](b)
	k.run(nest(dst.Shape, dst.Strides, a.Strides, b.Strides), func(n int, at, step [operands]int) {
		switch step {
		case [operands]int{1, 1, 1}:
			binaryRow(op, d[at[0]:][:n], x[at[1]:][:n], y[at[2]:][:n])
			return
		case [operands]int{1, 1, 0}:
			if binaryScalar(op, d[at[0]:][:n], x[at[1]:][:n], y[at[2]]) {
				return
			}
		}
		if n < short {
			for i := range n {
				d[at[0]+i*step[0]] = binary(op, x[at[1]+i*step[1]], y[at[2]+i*step[2]])
			}
			return
		}
		var to, left, right [batch]float32
		for i := 0; i < n; i += batch {
			m := min(batch, n-i)
			binaryRow(op, to[:m], gathered(left[:m], x, at[1]+i*step[1], step[1]), gathered(right[:m], y, at[2]+i*step[2], step[2]))
			scatter(d, at[0]+i*step[0], step[0], to[:m])
		}
	})
}

func binaryRow(op engine.BinaryOp, d, x, y []float32) {
	x, y = x[:len(d)], y[:len(d)]
	switch op {
	case engine.Add:
		vec.Add(d, x, y)
	case engine.Sub:
		for i := range d {
			d[i] = x[i] - y[i]
		}
	case engine.Mul:
		vec.Mul(d, x, y)
	case engine.Div:
		for i := range d {
			d[i] = x[i] / y[i]
		}
	case engine.Max:
		for i := range d {
			d[i] = max(x[i], y[i])
		}
	case engine.Less:
		for i := range d {
			d[i] = truth(x[i] < y[i])
		}
	case engine.Equal:
		for i := range d {
			d[i] = truth(x[i] == y[i])
		}
	default:
		for i := range d {
			d[i] = binary(op, x[i], y[i])
		}
	}
}

// binaryScalar is binaryRow with one right operand for the whole row, as biases
// and scale factors give. It reports whether it has a loop for the operation.
func binaryScalar(op engine.BinaryOp, d, x []float32, y float32) bool {
	switch op {
	case engine.Add:
		x = x[:len(d)]
		for i := range d {
			d[i] = x[i] + y
		}
	case engine.Mul:
		vec.Scale(d, x, y)
	default:
		return false
	}
	return true
}

func (k *kernels) Where(dst, cond, a, b engine.View) {
	d, c, x, y := words[float32](dst), words[float32](cond), words[float32](a), words[float32](b)
	k.run(nest(dst.Shape, dst.Strides, cond.Strides, a.Strides, b.Strides), func(n int, at, step [operands]int) {
		for i := range n {
			v := y[at[3]+i*step[3]]
			if c[at[1]+i*step[1]] != 0 {
				v = x[at[2]+i*step[2]]
			}
			d[at[0]+i*step[0]] = v
		}
	})
}

func (k *kernels) Sync() error {
	err := k.sticky
	k.sticky = nil
	return err
}
