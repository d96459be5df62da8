package torch

// opcode is a pickle instruction (PEP 307, PEP 3154, PEP 574 and pickletools).
type opcode byte

const (
	opMark         opcode = '('
	opStop         opcode = '.'
	opPop          opcode = '0'
	opPopMark      opcode = '1'
	opDup          opcode = '2'
	opFloat        opcode = 'F'
	opInt          opcode = 'I'
	opInt4         opcode = 'J'
	opInt1         opcode = 'K'
	opLong         opcode = 'L'
	opInt2         opcode = 'M'
	opNone         opcode = 'N'
	opPersID       opcode = 'P'
	opBinPersID    opcode = 'Q'
	opReduce       opcode = 'R'
	opOldString    opcode = 'S'
	opOldString4   opcode = 'T'
	opOldString1   opcode = 'U'
	opText         opcode = 'V'
	opString4      opcode = 'X'
	opAppend       opcode = 'a'
	opBuild        opcode = 'b'
	opGlobal       opcode = 'c'
	opDict         opcode = 'd'
	opEmptyDict    opcode = '}'
	opAppends      opcode = 'e'
	opMemoGet      opcode = 'g'
	opMemoGet1     opcode = 'h'
	opInst         opcode = 'i'
	opMemoGet4     opcode = 'j'
	opList         opcode = 'l'
	opEmptyList    opcode = ']'
	opObj          opcode = 'o'
	opMemoPut      opcode = 'p'
	opMemoPut1     opcode = 'q'
	opMemoPut4     opcode = 'r'
	opSetItem      opcode = 's'
	opTuple        opcode = 't'
	opTuple0       opcode = ')'
	opSetItems     opcode = 'u'
	opBinFloat     opcode = 'G'
	opBytes4       opcode = 'B'
	opBytes1       opcode = 'C'
	opProto        opcode = 0x80
	opNewObj       opcode = 0x81
	opExt1         opcode = 0x82
	opExt2         opcode = 0x83
	opExt4         opcode = 0x84
	opTuple1       opcode = 0x85
	opTuple2       opcode = 0x86
	opTuple3       opcode = 0x87
	opTrue         opcode = 0x88
	opFalse        opcode = 0x89
	opLong1        opcode = 0x8a
	opLong4        opcode = 0x8b
	opString1      opcode = 0x8c
	opString8      opcode = 0x8d
	opBytes8       opcode = 0x8e
	opEmptySet     opcode = 0x8f
	opAddItems     opcode = 0x90
	opFrozenSet    opcode = 0x91
	opNewObjEx     opcode = 0x92
	opStackGlobal  opcode = 0x93
	opMemoize      opcode = 0x94
	opFrame        opcode = 0x95
	opByteArray8   opcode = 0x96
	opNextBuffer   opcode = 0x97
	opReadonlyBuff opcode = 0x98
)
