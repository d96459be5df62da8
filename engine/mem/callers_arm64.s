#include "textflag.h"

// func walk(pcs *uintptr, n int) int
//
// As on amd64: the frame pointer R29 points at the saved one, and the word above
// that is the return address.
TEXT ·walk(SB), NOSPLIT|NOFRAME, $0-24
	MOVD pcs+0(FP), R0
	MOVD n+8(FP), R1
	MOVD R29, R2
	MOVD $0, R3
	CBZ  R2, done
next:
	CMP  R1, R3
	BGE  done
	MOVD 8(R2), R4
	MOVD R4, (R0)(R3<<3)
	ADD  $1, R3
	MOVD (R2), R4
	CMP  R2, R4
	MOVD R4, R2
	BHI  next
done:
	MOVD R3, ret+16(FP)
	RET
