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

// Order of 32-bit words after two levels of packing within 128-bit halves.
DATA order<>+0(SB)/8, $0x0000000400000000
DATA order<>+8(SB)/8, $0x0000000500000001
DATA order<>+16(SB)/8, $0x0000000600000002
DATA order<>+24(SB)/8, $0x0000000700000003
GLOBL order<>(SB), RODATA|NOPTR, $32

// func codesAVX2(out *uint64, w *uint32, spans int, scale, bias float32, bits int)
TEXT ·codesAVX2(SB), NOSPLIT, $0-40
	MOVQ         out+0(FP), DI
	MOVQ         w+8(FP), SI
	MOVQ         spans+16(FP), BX
	VBROADCASTSS scale+24(FP), Y15
	VBROADCASTSS bias+28(FP), Y14
	MOVQ         bits+32(FP), CX
	MOVQ         CX, R8

	MOVL         $1, AX
	SHLL         CX, AX
	DECL         AX
	VMOVD        AX, X13
	VPBROADCASTD X13, Y13         // the largest code
	MOVL         $0x100, AX
	SHLL         CX, AX
	ORL          $1, AX
	VMOVD        AX, X12
	VPBROADCASTW X12, Y12         // bytes 1, 2^bits
	ADDQ         CX, CX
	MOVL         $0x10000, AX
	SHLL         CX, AX
	ORL          $1, AX
	VMOVD        AX, X11
	VPBROADCASTD X11, Y11         // words 1, 2^(2*bits)
	ADDQ         CX, CX
	VMOVQ        CX, X10          // 4*bits
	VMOVDQU      order<>(SB), Y9
	VPXOR        Y8, Y8, Y8

loop:
	VMOVUPS   (SI), Y0
	VMOVUPS   32(SI), Y1
	VMOVUPS   64(SI), Y2
	VMOVUPS   96(SI), Y3
	VSUBPS    Y14, Y0, Y0
	VSUBPS    Y14, Y1, Y1
	VSUBPS    Y14, Y2, Y2
	VSUBPS    Y14, Y3, Y3
	VDIVPS    Y15, Y0, Y0
	VDIVPS    Y15, Y1, Y1
	VDIVPS    Y15, Y2, Y2
	VDIVPS    Y15, Y3, Y3
	VCVTPS2DQ Y0, Y0
	VCVTPS2DQ Y1, Y1
	VCVTPS2DQ Y2, Y2
	VCVTPS2DQ Y3, Y3
	VPMINSD   Y13, Y0, Y0
	VPMINSD   Y13, Y1, Y1
	VPMINSD   Y13, Y2, Y2
	VPMINSD   Y13, Y3, Y3
	VPACKUSDW Y1, Y0, Y0
	VPACKUSDW Y3, Y2, Y2
	VPACKUSWB Y2, Y0, Y0
	VPERMD    Y0, Y9, Y0      // 32 codes, one per byte
	CMPQ      R8, $8
	JEQ       store

	VPMADDUBSW Y12, Y0, Y0           // pairs
	VPMADDWD   Y11, Y0, Y0           // fours
	VPSRLQ     $32, Y0, Y1
	VPSLLQ     X10, Y1, Y1
	VPBLENDD   $0xaa, Y8, Y0, Y0
	VPOR       Y1, Y0, Y0            // eights

store:
	VMOVDQU Y0, (DI)
	ADDQ    $128, SI
	ADDQ    $32, DI
	DECQ    BX
	JNZ     loop
	VZEROUPPER
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
