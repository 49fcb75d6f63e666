#include "textflag.h"

// 1.5 * 2^52: adding and subtracting it rounds to an integer.
DATA magic<>+0(SB)/8, $0x4338000000000000
GLOBL magic<>(SB), RODATA|NOPTR, $8

// CODES makes codes in Y0 of four elements at SI. Y15 bias, Y14 1/scale, Y13 magic, Y12 zero, Y11 the largest code.
#define CODES \
	VMOVUPD (SI), Y1     \
	VSUBPD  Y15, Y1, Y0  \
	VMULPD  Y14, Y0, Y0  \
	VADDPD  Y13, Y0, Y0  \
	VSUBPD  Y13, Y0, Y0  \
	VMAXPD  Y12, Y0, Y0  \
	VMINPD  Y11, Y0, Y0

// func sumsAVX2(out *[3]lanes, x, d *float64, n int, bias, by, limit float64)
TEXT ·sumsAVX2(SB), NOSPLIT, $0-56
	MOVQ         out+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         d+16(FP), DX
	MOVQ         n+24(FP), CX
	VBROADCASTSD bias+32(FP), Y15
	VBROADCASTSD by+40(FP), Y14
	VBROADCASTSD magic<>(SB), Y13
	VXORPD       Y12, Y12, Y12
	VBROADCASTSD limit+48(FP), Y11
	VXORPD       Y10, Y10, Y10
	VXORPD       Y9, Y9, Y9
	VXORPD       Y8, Y8, Y8

sumsLoop:
	CODES
	VMOVUPD (DX), Y2
	VMULPD  Y0, Y2, Y3   // d*q
	VMULPD  Y1, Y2, Y4   // d*x
	VADDPD  Y3, Y10, Y10
	VMULPD  Y0, Y3, Y3
	VMULPD  Y0, Y4, Y4
	VADDPD  Y3, Y9, Y9
	VADDPD  Y4, Y8, Y8
	ADDQ    $32, SI
	ADDQ    $32, DX
	SUBQ    $4, CX
	JNZ     sumsLoop
	VMOVUPD Y10, (DI)
	VMOVUPD Y9, 32(DI)
	VMOVUPD Y8, 64(DI)
	VZEROUPPER
	RET

// func distanceAVX2(out *lanes, x, d *float64, n int, bias, scale, by, limit float64)
TEXT ·distanceAVX2(SB), NOSPLIT, $0-64
	MOVQ         out+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         d+16(FP), DX
	MOVQ         n+24(FP), CX
	VBROADCASTSD bias+32(FP), Y15
	VBROADCASTSD scale+40(FP), Y9
	VBROADCASTSD by+48(FP), Y14
	VBROADCASTSD magic<>(SB), Y13
	VXORPD       Y12, Y12, Y12
	VBROADCASTSD limit+56(FP), Y11
	VXORPD       Y10, Y10, Y10

distanceLoop:
	CODES
	VMULPD  Y9, Y0, Y0
	VSUBPD  Y15, Y1, Y1
	VSUBPD  Y0, Y1, Y1   // (x-bias) - scale*q
	VMULPD  (DX), Y1, Y2
	VMULPD  Y1, Y2, Y2
	VADDPD  Y2, Y10, Y10
	ADDQ    $32, SI
	ADDQ    $32, DX
	SUBQ    $4, CX
	JNZ     distanceLoop
	VMOVUPD Y10, (DI)
	VZEROUPPER
	RET

// func moveAVX2(later *float64, n int, u *float64, stride int, e *float64, rows int)
TEXT ·moveAVX2(SB), NOSPLIT, $0-48
	MOVQ later+0(FP), DI
	MOVQ n+8(FP), CX
	MOVQ u+16(FP), SI
	MOVQ stride+24(FP), R8
	SHLQ $3, R8
	MOVQ e+32(FP), R9

	CMPQ CX, $16
	JLT  moveFour

moveSixteen:
	MOVQ    rows+40(FP), BX
	MOVQ    SI, R10
	MOVQ    R9, R11
	VMOVUPD (DI), Y0
	VMOVUPD 32(DI), Y1
	VMOVUPD 64(DI), Y2
	VMOVUPD 96(DI), Y3

moveSixteenRow:
	VBROADCASTSD (R11), Y4
	VMULPD       (R10), Y4, Y5
	VMULPD       32(R10), Y4, Y6
	VMULPD       64(R10), Y4, Y7
	VMULPD       96(R10), Y4, Y8
	VSUBPD       Y5, Y0, Y0
	VSUBPD       Y6, Y1, Y1
	VSUBPD       Y7, Y2, Y2
	VSUBPD       Y8, Y3, Y3
	ADDQ         R8, R10
	ADDQ         $8, R11
	DECQ         BX
	JNZ          moveSixteenRow
	VMOVUPD      Y0, (DI)
	VMOVUPD      Y1, 32(DI)
	VMOVUPD      Y2, 64(DI)
	VMOVUPD      Y3, 96(DI)
	ADDQ         $128, DI
	ADDQ         $128, SI
	SUBQ         $16, CX
	CMPQ         CX, $16
	JGE          moveSixteen

moveFour:
	TESTQ CX, CX
	JZ    moveDone
	MOVQ    rows+40(FP), BX
	MOVQ    SI, R10
	MOVQ    R9, R11
	VMOVUPD (DI), Y0

moveFourRow:
	VBROADCASTSD (R11), Y4
	VMULPD       (R10), Y4, Y5
	VSUBPD       Y5, Y0, Y0
	ADDQ         R8, R10
	ADDQ         $8, R11
	DECQ         BX
	JNZ          moveFourRow
	VMOVUPD      Y0, (DI)
	ADDQ         $32, DI
	ADDQ         $32, SI
	SUBQ         $4, CX
	JMP          moveFour

moveDone:
	VZEROUPPER
	RET
