package parquet

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// Places in a dictionary are written as runs of equal ones, or packed by eight in as few bits as the
// largest needs: Parquet calls it the RLE/bit-packing hybrid.

// shortest is the number of equal values that is worth a run.
const shortest = 8

// appendHybrid appends the width in bits and all values.
func appendHybrid(out []byte, values []uint32, distinct int) []byte {
	width := bits.Len32(uint32(max(distinct-1, 1)))
	out = append(out, byte(width))
	for at := 0; at < len(values); {
		run := runOf(values[at:])
		if run >= shortest {
			out = binary.AppendUvarint(out, uint64(run)<<1)
			v := values[at]
			for range (width + 7) / 8 {
				out = append(out, byte(v))
				v >>= 8
			}
			at += run
			continue
		}
		from := at
		for at < len(values) && (at == from || runOf(values[at:]) < shortest) {
			at += 8 // whole eights; the last may reach beyond the end
		}
		groups := (at - from) / 8
		at = min(at, len(values))
		out = binary.AppendUvarint(out, uint64(groups)<<1|1)
		out = appendPacked(out, values[from:at], groups*8, width)
	}
	return out
}

func runOf(values []uint32) int {
	n := 1
	for n < len(values) && values[n] == values[0] {
		n++
	}
	return n
}

func appendPacked(out []byte, values []uint32, padded, width int) []byte {
	var hold uint64
	held := 0
	for i := range padded {
		if i < len(values) {
			hold |= uint64(values[i]) << held
		}
		for held += width; held >= 8; held -= 8 {
			out = append(out, byte(hold))
			hold >>= 8
		}
	}
	return out
}

var errPlaces = errors.New("places in a dictionary that cannot be decoded")

// decodeHybrid fills out from the width and the values; each is below limit.
func decodeHybrid(in []byte, out []uint32, limit int) error {
	if len(in) == 0 {
		return errPlaces
	}
	width := int(in[0])
	in = in[1:]
	if width > 32 {
		return errPlaces
	}
	for at := 0; at < len(out); {
		head, n := binary.Uvarint(in)
		if n <= 0 {
			return errPlaces
		}
		in = in[n:]
		if head&1 == 0 {
			size := (width + 7) / 8
			if len(in) < size || head>>1 == 0 {
				return errPlaces
			}
			v := uint32(0)
			for i := range size {
				v |= uint32(in[i]) << (8 * i)
			}
			if int64(v) >= int64(limit) {
				return errPlaces
			}
			in = in[size:]
			end := len(out)
			if head>>1 < uint64(end-at) {
				end = at + int(head>>1)
			}
			for ; at < end; at++ {
				out[at] = v
			}
			continue
		}
		groups := head >> 1
		if groups == 0 || groups > uint64(len(out)-at+7)/8 || uint64(len(in)) < groups*uint64(width) {
			return errPlaces
		}
		packed := in[:groups*uint64(width)]
		in = in[len(packed):]
		end := min(at+int(groups)*8, len(out))
		if !unpack(packed, out[at:end], width, uint32(limit)) {
			return errPlaces
		}
		at = end
	}
	return nil
}

// unpack reports whether all values are below limit.
func unpack(packed []byte, out []uint32, width int, limit uint32) bool {
	var hold uint64
	held, at := 0, 0
	mask := uint64(1)<<width - 1
	most := uint32(0)
	for i := range out {
		for held < width {
			if held <= 32 && at+4 <= len(packed) {
				hold |= uint64(binary.LittleEndian.Uint32(packed[at:])) << held
				held, at = held+32, at+4
				continue
			}
			if at >= len(packed) {
				return false
			}
			hold |= uint64(packed[at]) << held
			held, at = held+8, at+1
		}
		v := uint32(hold & mask)
		hold >>= width
		held -= width
		most = max(most, v)
		out[i] = v
	}
	return len(out) == 0 || most < limit
}
