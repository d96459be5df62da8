package main

import (
	"strings"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// lanes emits functions of package vec: loops over slices of one length, eight
// elements at a time and a masked rest.
type lanes struct {
	*build.Context
	simd *avx2
	// constants lie eight times each in memory, to be operands as they are.
	constants map[uint32]operand.Mem
}

// newLanes takes y15 for the mask.
func newLanes(ctx *build.Context, maskName string) *lanes {
	return &lanes{Context: ctx, simd: newAVX2(ctx, maskName, reg.Y15), constants: make(map[uint32]operand.Mem)}
}

// bits is an operand of eight equal words.
func (l *lanes) bits(name string, word uint32) operand.Mem {
	if at, ok := l.constants[word]; ok {
		return at
	}
	at := l.StaticGlobal(name)
	l.DataAttributes(build.RODATA | build.NOPTR)
	for i := range 8 {
		l.AddDatum(4*i, operand.U32(word))
	}
	l.constants[word] = at
	return at
}

// stream is a slice that the loop runs over.
type stream struct {
	name        string
	read, write bool
}

// loop emits a function of the streams, in the order of its parameters, and n,
// which is at least 1. The body works on a register a stream.
func (l *lanes) loop(name, parameters, promise string, streams []stream, before func(), body func(r []reg.VecPhysical)) {
	var names []string
	for _, s := range streams {
		names = append(names, s.name)
	}
	if parameters != "" {
		parameters = ", " + parameters
	}
	function(l.Context, name, "func("+strings.Join(names, ", ")+" *float32, n int"+parameters+")", promise)
	var pointers []reg.GPVirtual
	for _, s := range streams {
		pointers = append(pointers, word(l.Context, s.name))
	}
	n := word(l.Context, "n")
	if before != nil {
		before()
	}
	registers := registersY()[:len(streams)]
	i := l.GP64()
	l.XORQ(i, i)
	each := func(masked bool) {
		at := func(s int) operand.Mem { return operand.Mem{Base: pointers[s], Index: i, Scale: 4} }
		for s := range streams {
			if streams[s].read {
				l.simd.load(at(s), registers[s], masked)
			}
		}
		body(registers)
		for s := range streams {
			if streams[s].write {
				l.simd.store(registers[s], at(s), masked)
			}
		}
	}
	l.SUBQ(operand.Imm(8), n)
	l.JLT(operand.LabelRef("rest"))
	l.Label("step")
	each(false)
	l.ADDQ(operand.Imm(8), i)
	l.CMPQ(i, n)
	l.JLE(operand.LabelRef("step"))

	l.Label("rest")
	l.ADDQ(operand.Imm(8), n)
	l.SUBQ(i, n)
	l.JZ(operand.LabelRef("end"))
	l.simd.setMask(n)
	each(true)
	l.Label("end")
	l.VZEROUPPER()
	l.RET()
}

// scalar loads a parameter into all lanes of a register.
func (l *lanes) scalar(name string, r reg.VecPhysical) {
	at, err := l.Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	l.VBROADCASTSS(at.Addr, r)
}
