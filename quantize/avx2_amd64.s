#include "textflag.h"

// The loaders: in Y0 to Y2 the largest signed, the largest and the smallest unsigned words so far; at the end they go to three results.
#define START \
	MOVQ     dst+0(FP), DI \
	MOVQ     src+8(FP), SI \
	MOVQ     n+16(FP), BX  \
	VPCMPEQD Y2, Y2, Y2    \
	VPSLLD   $31, Y2, Y0   \
	VPXOR    Y1, Y1, Y1

#define GATHER(Y) \
	VPMAXSD Y, Y0, Y0 \
	VPMAXUD Y, Y1, Y1 \
	VPMINUD Y, Y2, Y2

#define FOLD(OP, Y, X, RESULT) \
	VEXTRACTI128 $1, Y, X3    \
	OP           X3, X, X     \
	VPSHUFD      $0x4e, X, X3 \
	OP           X3, X, X     \
	VPSHUFD      $0xb1, X, X3 \
	OP           X3, X, X     \
	VMOVD        X, AX        \
	MOVL         AX, RESULT

#define FINISH \
	FOLD(VPMAXSD, Y0, X0, signed+24(FP))   \
	FOLD(VPMAXUD, Y1, X1, unsigned+28(FP)) \
	FOLD(VPMINUD, Y2, X2, nearest+32(FP))  \
	VZEROUPPER                             \
	RET

// func loadBF16AVX2(dst *uint32, src *byte, n int) (signed, unsigned, nearest uint32)
TEXT ·loadBF16AVX2(SB), NOSPLIT, $0-36
	START

loop:
	VPMOVZXWD (SI), Y3
	VPSLLD    $16, Y3, Y3
	VMOVDQU   Y3, (DI)
	GATHER(Y3)
	ADDQ      $16, SI
	ADDQ      $32, DI
	SUBQ      $8, BX
	JNZ       loop
	FINISH

// func loadF16AVX2(dst *uint32, src *byte, n int) (signed, unsigned, nearest uint32)
TEXT ·loadF16AVX2(SB), NOSPLIT, $0-36
	START
	MOVL         $0x8fffe000, AX
	VMOVD        AX, X4
	VPBROADCASTD X4, Y4
	MOVL         $0x77800000, AX // 2^112
	VMOVD        AX, X5
	VPBROADCASTD X5, Y5

loop:
	VPMOVZXWD (SI), Y3
	VPSLLD    $16, Y3, Y3
	GATHER(Y3)
	VPSRAD    $3, Y3, Y3
	VPAND     Y4, Y3, Y3
	VMULPS    Y5, Y3, Y3
	VMOVDQU   Y3, (DI)
	ADDQ      $16, SI
	ADDQ      $32, DI
	SUBQ      $8, BX
	JNZ       loop
	FINISH

// func loadF32AVX2(dst *uint32, src *byte, n int) (signed, unsigned, nearest uint32)
TEXT ·loadF32AVX2(SB), NOSPLIT, $0-36
	START

loop:
	VMOVDQU (SI), Y3
	VMOVDQU Y3, (DI)
	GATHER(Y3)
	ADDQ    $32, SI
	ADDQ    $32, DI
	SUBQ    $8, BX
	JNZ     loop
	FINISH
