#include "textflag.h"

// Two elements, at place i of X4, with eight channels: X0 and X1 are the sums.
#define TWO(i) \
	PSHUFD  $(i*0x55), X4, X5   \
	MOVOU   (i*32)(SI), X2      \
	MOVOU   (i*32+16)(SI), X3   \
	PMADDWL X5, X2              \
	PMADDWL X5, X3              \
	PADDL   X2, X0              \
	PADDL   X3, X1

// func dotEight(sums *[8]int32, x, w []int16)
//
// SSE2, which every amd64 has.
TEXT ·dotEight(SB), NOSPLIT, $0-56
	MOVQ sums+0(FP), DI
	MOVQ x_base+8(FP), R8
	MOVQ x_len+16(FP), CX
	MOVQ w_base+32(FP), SI
	PXOR X0, X0
	PXOR X1, X1
	SHRQ $3, CX
	JZ   done

loop:
	MOVOU (R8), X4
	TWO(0)
	TWO(1)
	TWO(2)
	TWO(3)
	ADDQ  $16, R8
	ADDQ  $128, SI
	DECQ  CX
	JNZ   loop

done:
	MOVOU X0, 0(DI)
	MOVOU X1, 16(DI)
	RET
