#include "go_asm.h"
#include "textflag.h"

// The state is in Z0 to Z15, the message in the other registers: a word of all 16 lanes in each. The transposition leaves
// the message's words in this order.
#define M0 Z20
#define M1 Z27
#define M2 Z25
#define M3 Z26
#define M4 Z18
#define M5 Z28
#define M6 Z19
#define M7 Z17
#define M8 Z16
#define M9 Z23
#define M10 Z21
#define M11 Z22
#define M12 Z24
#define M13 Z31
#define M14 Z29
#define M15 Z30

#define G(A, B, C, D, X, Y) \
	VPADDD X, A, A   \
	VPADDD B, A, A   \
	VPXORD A, D, D   \
	VPRORD $16, D, D \
	VPADDD D, C, C   \
	VPXORD C, B, B   \
	VPRORD $12, B, B \
	VPADDD Y, A, A   \
	VPADDD B, A, A   \
	VPXORD A, D, D   \
	VPRORD $8, D, D  \
	VPADDD D, C, C   \
	VPXORD C, B, B   \
	VPRORD $7, B, B

// ROUND mixes columns and diagonals.
#define ROUND(A, B, C, D, E, F, H, I, J, K, L, M, N, O, P, Q) \
	G(Z0, Z4, Z8, Z12, A, B)  \
	G(Z1, Z5, Z9, Z13, C, D)  \
	G(Z2, Z6, Z10, Z14, E, F) \
	G(Z3, Z7, Z11, Z15, H, I) \
	G(Z0, Z5, Z10, Z15, J, K) \
	G(Z1, Z6, Z11, Z12, L, M) \
	G(Z2, Z7, Z8, Z13, N, O)  \
	G(Z3, Z4, Z9, Z14, P, Q)

// FOUR reads a block of 4 lanes. In each 128 bits are then the same word of the 4: words 0, 4, 8 and 12 in T, 1, 5, 9 and
// 13 in D, and so on in B and C.
#define FOUR(A, B, C, D, T) \
	VMOVDQU32   (R10), A            \
	VPUNPCKLDQ  (R10)(R8*1), A, B   \
	VPUNPCKHDQ  (R10)(R8*1), A, A   \
	VMOVDQU32   (R10)(R8*2), C      \
	VPUNPCKLDQ  (R10)(R9*1), C, D   \
	VPUNPCKHDQ  (R10)(R9*1), C, C   \
	VPUNPCKLQDQ D, B, T             \
	VPUNPCKHQDQ D, B, D             \
	VPUNPCKLQDQ C, A, B             \
	VPUNPCKHQDQ C, A, C             \
	LEAQ        (R10)(R8*4), R10

// WORDS joins what FOUR made of all lanes: a word in C, those 4, 8 and 12 after it in T, B and D.
#define WORDS(A, B, C, D, T) \
	VSHUFI32X4 $0x88, B, A, T \
	VSHUFI32X4 $0xdd, B, A, A \
	VSHUFI32X4 $0x88, D, C, B \
	VSHUFI32X4 $0xdd, D, C, D \
	VSHUFI32X4 $0x88, B, T, C \
	VSHUFI32X4 $0xdd, B, T, B \
	VSHUFI32X4 $0x88, D, A, T \
	VSHUFI32X4 $0xdd, D, A, D

// STORE writes four words of lanes LANE, LANE+4, LANE+8 and LANE+12.
#define STORE(LANE, WORD, X) \
	VEXTRACTI32X4 $0, X, (LANE*32+WORD*4)(DI)     \
	VEXTRACTI32X4 $1, X, (LANE*32+WORD*4+128)(DI) \
	VEXTRACTI32X4 $2, X, (LANE*32+WORD*4+256)(DI) \
	VEXTRACTI32X4 $3, X, (LANE*32+WORD*4+384)(DI)

// HALF writes four words, in A to D, of all lanes.
#define HALF(WORD, A, B, C, D) \
	VPUNPCKLDQ  B, A, Z8    \
	VPUNPCKHDQ  B, A, Z9    \
	VPUNPCKLDQ  D, C, Z10   \
	VPUNPCKHDQ  D, C, Z11   \
	VPUNPCKLQDQ Z10, Z8, Z12 \
	VPUNPCKHQDQ Z10, Z8, Z13 \
	VPUNPCKLQDQ Z11, Z9, Z14 \
	VPUNPCKHQDQ Z11, Z9, Z15 \
	STORE(0, WORD, Z12)     \
	STORE(1, WORD, Z13)     \
	STORE(2, WORD, Z14)     \
	STORE(3, WORD, Z15)

// func hash16(out *[16]value, in *byte, l *lanes)
TEXT ·hash16(SB), NOSPLIT, $0-24
	MOVQ out+0(FP), DI
	MOVQ in+8(FP), SI
	MOVQ l+16(FP), DX
	MOVQ lanes_stride(DX), R8
	LEAQ (R8)(R8*2), R9
	MOVQ lanes_blocks(DX), CX
	MOVL lanes_flags(DX), AX
	ORL  lanes_first(DX), AX
	VPBROADCASTD ·initial+0(SB), Z0
	VPBROADCASTD ·initial+4(SB), Z1
	VPBROADCASTD ·initial+8(SB), Z2
	VPBROADCASTD ·initial+12(SB), Z3
	VPBROADCASTD ·initial+16(SB), Z4
	VPBROADCASTD ·initial+20(SB), Z5
	VPBROADCASTD ·initial+24(SB), Z6
	VPBROADCASTD ·initial+28(SB), Z7

block:
	CMPQ CX, $1
	JNE  read
	ORL  lanes_last(DX), AX

read:
	MOVQ SI, R10
	FOUR(Z16, Z17, Z18, Z19, Z15)
	FOUR(Z20, Z21, Z22, Z23, Z16)
	FOUR(Z24, Z25, Z26, Z27, Z20)
	FOUR(Z28, Z29, Z30, Z31, Z24)
	WORDS(Z19, Z23, Z27, Z31, Z28)
	WORDS(Z17, Z21, Z25, Z29, Z19)
	WORDS(Z18, Z22, Z26, Z30, Z17)
	WORDS(Z15, Z16, Z20, Z24, Z18)

	VPBROADCASTD ·initial+0(SB), Z8
	VPBROADCASTD ·initial+4(SB), Z9
	VPBROADCASTD ·initial+8(SB), Z10
	VPBROADCASTD ·initial+12(SB), Z11
	VMOVDQU32    lanes_low(DX), Z12
	VMOVDQU32    lanes_high(DX), Z13
	MOVL         $64, R11
	VPBROADCASTD R11, Z14
	VPBROADCASTD AX, Z15
	ROUND(M0, M1, M2, M3, M4, M5, M6, M7, M8, M9, M10, M11, M12, M13, M14, M15)
	ROUND(M2, M6, M3, M10, M7, M0, M4, M13, M1, M11, M12, M5, M9, M14, M15, M8)
	ROUND(M3, M4, M10, M12, M13, M2, M7, M14, M6, M5, M9, M0, M11, M15, M8, M1)
	ROUND(M10, M7, M12, M9, M14, M3, M13, M15, M4, M0, M11, M2, M5, M8, M1, M6)
	ROUND(M12, M13, M9, M11, M15, M10, M14, M8, M7, M2, M5, M3, M0, M1, M6, M4)
	ROUND(M9, M14, M11, M5, M8, M12, M15, M1, M13, M3, M0, M10, M2, M6, M4, M7)
	ROUND(M11, M15, M5, M0, M1, M9, M8, M6, M14, M10, M2, M12, M3, M4, M7, M13)
	VPXORD Z8, Z0, Z0
	VPXORD Z9, Z1, Z1
	VPXORD Z10, Z2, Z2
	VPXORD Z11, Z3, Z3
	VPXORD Z12, Z4, Z4
	VPXORD Z13, Z5, Z5
	VPXORD Z14, Z6, Z6
	VPXORD Z15, Z7, Z7
	ADDQ   $64, SI
	MOVL   lanes_flags(DX), AX
	DECQ   CX
	JNZ    block

	HALF(0, Z0, Z1, Z2, Z3)
	HALF(4, Z4, Z5, Z6, Z7)
	VZEROUPPER
	RET
