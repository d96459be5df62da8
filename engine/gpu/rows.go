package gpu

import (
	"encoding/binary"
	"fmt"

	"github.com/memdiag/memdiag/engine"
)

// Gather picks rows; see engine.Kernels.
func (k *kernels) Gather(dst, table, index engine.View) {
	count := dst.Shape.Elements()
	if count == 0 {
		return
	}
	k.rows("gather", count, 1, dst, table, index, table.Shape.Dims[0], table)
}

// ScatterAdd adds rows up; see engine.Kernels.
func (k *kernels) ScatterAdd(dst, index, src engine.View) {
	if src.Shape.Elements() == 0 {
		return
	}
	rows, width := dst.Shape.Dims[0], dst.Shape.Dims[1]
	strips := max(1, min(rows, k.invocations()/width))
	k.rows("scatter", strips*width, strips, dst, src, index, rows, src)
}

// invocations is how many a device wants at least, to be busy.
func (k *kernels) invocations() int {
	if k.device.software() {
		return groupSize
	}
	return 1 << 14
}

// rows runs a shader that moves rows; read is src or the table, of a width that dst
// has as well, and table has as many rows.
func (k *kernels) rows(shader string, count, strips int, dst, src, index engine.View, table int, read engine.View) {
	if !k.fits(dst, src, index) {
		k.tooLarge(shader, dst, src, index)
		return
	}
	to, toAt := k.bind(dst)
	from, fromAt := k.bind(src)
	picks, picksAt := k.bind(index)
	status := binding{k.queue.status.buffer, 0, statusBytes}
	k.asked = true
	k.run(shader, count, []uint32{
		uint32(count), uint32(table), uint32(dst.Shape.Dims[1]), uint32(index.Shape.Dims[0]),
		toAt, fromAt, picksAt, uint32(index.Strides[0]),
		uint32(read.Strides[0]), uint32(read.Strides[1]), uint32(strips), k.status * statusWords,
	}, to, from, picks, status)
}

// statusRange is where the kernels' own status lies.
func (k *kernels) statusRange() binding {
	const size = statusWords * engine.ElementSize
	return binding{k.queue.status.buffer, uint64(k.status) * size, size}
}

// outside waits for the device and returns the error that a kernel noted, clearing it.
func (k *kernels) outside() error {
	var words [statusWords * engine.ElementSize]byte
	k.queue.download(words[:], k.statusRange())
	word := func(i int) uint32 { return binary.NativeEndian.Uint32(words[i*engine.ElementSize:]) }
	if word(0) == 0 {
		return nil
	}
	k.queue.fill(k.statusRange(), 0)
	return fmt.Errorf("index %d is %d, outside a table of %d rows", word(1), int32(word(2)), word(3))
}
