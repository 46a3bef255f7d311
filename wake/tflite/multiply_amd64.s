#include "textflag.h"

// func multiply(sums *[32]float32, x0, x1, x2, x3, w []float32)
//
// SSE only, which every amd64 has. X0..X7 are the sums of four stretches, two registers each; X8 and X9 the weights.
TEXT ·multiply(SB), NOSPLIT, $0-128
	MOVQ sums+0(FP), DI
	MOVQ x0_base+8(FP), R8
	MOVQ x0_len+16(FP), CX
	MOVQ x1_base+32(FP), R9
	MOVQ x2_base+56(FP), R10
	MOVQ x3_base+80(FP), R11
	MOVQ w_base+104(FP), SI

	MOVUPS 0(DI), X0
	MOVUPS 16(DI), X1
	MOVUPS 32(DI), X2
	MOVUPS 48(DI), X3
	MOVUPS 64(DI), X4
	MOVUPS 80(DI), X5
	MOVUPS 96(DI), X6
	MOVUPS 112(DI), X7

	XORQ AX, AX
	JMP  next

loop:
	MOVUPS (SI), X8
	MOVUPS 16(SI), X9
	ADDQ   $32, SI

	MOVSS  (R8)(AX*4), X10
	SHUFPS $0, X10, X10
	MOVAPS X10, X11
	MULPS  X8, X10
	MULPS  X9, X11
	ADDPS  X10, X0
	ADDPS  X11, X1

	MOVSS  (R9)(AX*4), X12
	SHUFPS $0, X12, X12
	MOVAPS X12, X13
	MULPS  X8, X12
	MULPS  X9, X13
	ADDPS  X12, X2
	ADDPS  X13, X3

	MOVSS  (R10)(AX*4), X10
	SHUFPS $0, X10, X10
	MOVAPS X10, X11
	MULPS  X8, X10
	MULPS  X9, X11
	ADDPS  X10, X4
	ADDPS  X11, X5

	// The last stretch needs the weights no more.
	MOVSS  (R11)(AX*4), X12
	SHUFPS $0, X12, X12
	MULPS  X12, X8
	MULPS  X12, X9
	ADDPS  X8, X6
	ADDPS  X9, X7
	INCQ   AX

next:
	CMPQ AX, CX
	JLT  loop

	MOVUPS X0, 0(DI)
	MOVUPS X1, 16(DI)
	MOVUPS X2, 32(DI)
	MOVUPS X3, 48(DI)
	MOVUPS X4, 64(DI)
	MOVUPS X5, 80(DI)
	MOVUPS X6, 96(DI)
	MOVUPS X7, 112(DI)
	RET
