#include "textflag.h"

// func walk(pcs *uintptr, n int) int
//
// It has no frame of its own, so BP is the caller's: the word above it is the
// caller's return address, the word at it the next frame pointer. It ends at the
// goroutine's first frame, whose frame pointer is zero; one that does not
// increase is taken for the end too, since stacks grow down.
TEXT ·walk(SB), NOSPLIT|NOFRAME, $0-24
	MOVQ pcs+0(FP), DI
	MOVQ n+8(FP), CX
	MOVQ BP, SI
	XORQ AX, AX
	TESTQ SI, SI
	JEQ  done
next:
	CMPQ AX, CX
	JGE  done
	MOVQ 8(SI), DX
	MOVQ DX, (DI)(AX*8)
	INCQ AX
	MOVQ (SI), DX
	CMPQ DX, SI
	MOVQ DX, SI
	JHI  next
done:
	MOVQ AX, ret+16(FP)
	RET
