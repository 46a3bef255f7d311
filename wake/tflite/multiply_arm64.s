#include "textflag.h"

// func multiply(sums *[32]float32, x0, x1, x2, x3, w []float32)
//
// V0..V7 are the sums of four stretches, two registers each; V8 and V9 the weights.
TEXT ·multiply(SB), NOSPLIT, $0-128
	MOVD sums+0(FP), R0
	MOVD x0_base+8(FP), R1
	MOVD x0_len+16(FP), R6
	MOVD x1_base+32(FP), R2
	MOVD x2_base+56(FP), R3
	MOVD x3_base+80(FP), R4
	MOVD w_base+104(FP), R5

	MOVD R0, R7
	VLD1.P 64(R7), [V0.S4, V1.S4, V2.S4, V3.S4]
	VLD1   (R7), [V4.S4, V5.S4, V6.S4, V7.S4]
	CBZ    R6, done

loop:
	VLD1.P  32(R5), [V8.S4, V9.S4]
	VLD1R.P 4(R1), [V10.S4]
	VLD1R.P 4(R2), [V11.S4]
	VLD1R.P 4(R3), [V12.S4]
	VLD1R.P 4(R4), [V13.S4]
	VFMLA   V8.S4, V10.S4, V0.S4
	VFMLA   V9.S4, V10.S4, V1.S4
	VFMLA   V8.S4, V11.S4, V2.S4
	VFMLA   V9.S4, V11.S4, V3.S4
	VFMLA   V8.S4, V12.S4, V4.S4
	VFMLA   V9.S4, V12.S4, V5.S4
	VFMLA   V8.S4, V13.S4, V6.S4
	VFMLA   V9.S4, V13.S4, V7.S4
	SUBS    $1, R6
	BNE     loop

done:
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R0)
	VST1   [V4.S4, V5.S4, V6.S4, V7.S4], (R0)
	RET
