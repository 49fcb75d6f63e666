#include "go_asm.h"
#include "textflag.h"

// KEY turns floats of words or doublewords into integers of the same order, and back: what is negative gets its other bits inverted.
#define KEY(SRA, SRL, TOP, Y, T) \
	SRA   TOP, Y, T \
	SRL   $1, T, T  \
	VPXOR T, Y, Y

// PREPARE sets up a function that codes groups, by spans of 32 elements.
#define PREPARE \
	MOVQ         dst+0(FP), DI    \
	MOVQ         src+8(FP), SI    \
	MOVQ         b+16(FP), R9     \
	MOVQ         groups+24(FP), BX \
	MOVQ         n+32(FP), DX     \
	MOVQ         bits+40(FP), CX  \
	MOVQ         CX, R8           \
	MOVL         $1, AX           \
	SHLL         CX, AX           \
	DECL         AX               \
	VMOVD        AX, X13          \
	VPBROADCASTD X13, Y13         \ // the largest code
	MOVL         $0x100, AX       \
	SHLL         CX, AX           \
	ORL          $1, AX           \
	VMOVD        AX, X12          \
	VPBROADCASTW X12, Y12         \ // bytes 1, 2^bits
	ADDQ         CX, CX           \
	MOVL         $0x10000, AX     \
	SHLL         CX, AX           \
	ORL          $1, AX           \
	VMOVD        AX, X11          \
	VPBROADCASTD X11, Y11         \ // words 1, 2^(2*bits)
	ADDQ         CX, CX           \
	VMOVQ        CX, X10          \ // 4*bits
	VBROADCASTI128 affineGroups_join(R9), Y9      \
	VPXOR        Y8, Y8, Y8

#define PARAMETERS \
	VBROADCASTSS affineGroups_scale(R9), Y15 \
	VBROADCASTSS affineGroups_bias(R9), Y14  \
	MOVQ         DX, CX

// CODE makes 32 codes, a byte each, in the order 0-7, 16-23, 8-15, 24-31.
#define CODE \
	VSUBPS    Y14, Y0, Y0 \
	VSUBPS    Y14, Y1, Y1 \
	VSUBPS    Y14, Y2, Y2 \
	VSUBPS    Y14, Y3, Y3 \
	VDIVPS    Y15, Y0, Y0 \
	VDIVPS    Y15, Y1, Y1 \
	VDIVPS    Y15, Y2, Y2 \
	VDIVPS    Y15, Y3, Y3 \
	VCVTPS2DQ Y0, Y0      \
	VCVTPS2DQ Y1, Y1      \
	VCVTPS2DQ Y2, Y2      \
	VCVTPS2DQ Y3, Y3      \
	VPMINSD   Y13, Y0, Y0 \
	VPMINSD   Y13, Y1, Y1 \
	VPMINSD   Y13, Y2, Y2 \
	VPMINSD   Y13, Y3, Y3 \
	VPACKUSDW Y1, Y0, Y0  \
	VPACKUSDW Y3, Y2, Y2  \
	VPACKUSWB Y2, Y0, Y0  \
	CMPQ      R8, $4

// PACK4 packs 32 codes of 4 bits.
#define PACK4 \
	VPMADDUBSW   Y12, Y0, Y0    \
	VEXTRACTI128 $1, Y0, X1     \
	VPACKUSWB    X1, X0, X0     \
	VPSHUFD      $0xd8, X0, X0  \
	VMOVDQU      X0, (DI)       \
	ADDQ         $16, DI

// ORDER puts 32 codes in order, and asks whether they have 8 bits.
#define ORDER \
	VPERMQ $0xd8, Y0, Y0 \
	CMPQ   R8, $8

// JOIN packs 32 codes of other sizes: eight in a quadword each, then without the gaps between those. It writes up to 12 bytes
// too many.
#define JOIN \
	VPMADDUBSW   Y12, Y0, Y0       \ // pairs
	VPMADDWD     Y11, Y0, Y0       \ // fours
	VPSRLQ       $32, Y0, Y1       \
	VPSLLQ       X10, Y1, Y1       \
	VPBLENDD     $0xaa, Y8, Y0, Y0 \
	VPOR         Y1, Y0, Y0        \ // eights
	VPSHUFB      Y9, Y0, Y0        \
	VMOVDQU      X0, (DI)          \
	VEXTRACTI128 $1, Y0, (DI)(R8*2) \
	LEAQ         (DI)(R8*4), DI

// func endsAffine16(b *affineGroups, src *byte, groups, n int)
TEXT ·endsAffine16(SB), NOSPLIT, $0-32
	MOVQ     b+0(FP), DI
	MOVQ     src+8(FP), SI
	MOVQ     groups+16(FP), BX
	MOVQ     n+24(FP), DX
	VPCMPEQD X15, X15, X15
	VPSRLW   $1, X15, X14 // 0x7fff
	VPSLLW   $15, X15, X15 // 0x8000

group:
	VMOVDQU (SI), Y0
	VMOVDQU 32(SI), Y1
	KEY(VPSRAW, VPSRLW, $15, Y0, Y4)
	KEY(VPSRAW, VPSRLW, $15, Y1, Y5)
	VPMINSW Y1, Y0, Y2
	VPMAXSW Y1, Y0, Y3
	ADDQ    $64, SI
	MOVQ    DX, CX
	SUBQ    $32, CX
	JZ      fold

more:
	VMOVDQU (SI), Y0
	VMOVDQU 32(SI), Y1
	KEY(VPSRAW, VPSRLW, $15, Y0, Y4)
	KEY(VPSRAW, VPSRLW, $15, Y1, Y5)
	VPMINSW Y0, Y2, Y2
	VPMAXSW Y0, Y3, Y3
	VPMINSW Y1, Y2, Y2
	VPMAXSW Y1, Y3, Y3
	ADDQ    $64, SI
	SUBQ    $32, CX
	JNZ     more

fold:
	VEXTRACTI128 $1, Y2, X4
	VEXTRACTI128 $1, Y3, X5
	VPMINSW      X4, X2, X2
	VPMAXSW      X5, X3, X3
	VPXOR        X15, X2, X2 // PHMINPOSUW knows unsigned words only
	VPXOR        X14, X3, X3
	VPHMINPOSUW  X2, X2
	VPHMINPOSUW  X3, X3
	VPXOR        X15, X2, X2
	VPXOR        X14, X3, X3
	VPEXTRW      $0, X2, affineGroups_lo+2(DI)
	VPEXTRW      $0, X3, affineGroups_hi+2(DI)
	ADDQ         $4, DI
	DECQ         BX
	JNZ          group
	VZEROUPPER
	RET

// func endsAffine32(b *affineGroups, src *byte, groups, n int)
TEXT ·endsAffine32(SB), NOSPLIT, $0-32
	MOVQ b+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ groups+16(FP), BX
	MOVQ n+24(FP), DX

group:
	VMOVDQU (SI), Y2
	KEY(VPSRAD, VPSRLD, $31, Y2, Y4)
	VMOVDQA Y2, Y3
	MOVQ    DX, CX
	JMP     next

more:
	VMOVDQU (SI), Y0
	KEY(VPSRAD, VPSRLD, $31, Y0, Y4)
	VPMINSD Y0, Y2, Y2
	VPMAXSD Y0, Y3, Y3

next:
	ADDQ $32, SI
	SUBQ $8, CX
	JNZ  more

	VEXTRACTI128 $1, Y2, X4
	VEXTRACTI128 $1, Y3, X5
	VPMINSD      X4, X2, X2
	VPMAXSD      X5, X3, X3
	VPSHUFD      $0x4e, X2, X4
	VPSHUFD      $0x4e, X3, X5
	VPMINSD      X4, X2, X2
	VPMAXSD      X5, X3, X3
	VPSHUFD      $0xb1, X2, X4
	VPSHUFD      $0xb1, X3, X5
	VPMINSD      X4, X2, X2
	VPMAXSD      X5, X3, X3
	VMOVD        X2, affineGroups_lo(DI)
	VMOVD        X3, affineGroups_hi(DI)
	ADDQ         $4, DI
	DECQ         BX
	JNZ          group
	VZEROUPPER
	RET

#define BROADCAST(VALUE, X, Y) \
	MOVL         VALUE, AX \
	VMOVD        AX, X     \
	VPBROADCASTD X, Y

// WIDENF16 makes float32 of finite numbers in the upper halves of doublewords; see widenF16.
#define WIDENF16(Y, MASK, FACTOR) \
	VPSRAD $3, Y, Y      \
	VPAND  MASK, Y, Y    \
	VMULPS FACTOR, Y, Y

// ROUNDBF16 is toBF16 without NaN; T is changed. Y8 has 0x7fff.
#define ROUNDBF16(Y, T) \
	VPSLLD $15, Y, T \
	VPSRLD $31, T, T \
	VPADDD T, Y, Y   \
	VPADDD Y8, Y, Y  \
	VPSRLD $16, Y, Y

// ROUNDF16 is toF16 without NaN; T, U and V are changed.
#define ROUNDF16(Y, T, U, V) \
	VPSRLD    $31, Y, V          \
	VPSLLD    $15, V, V          \ // sign
	VPAND     abs<>(SB), Y, Y    \
	VPAND     inf<>(SB), Y, T    \
	VPMAXUD   binade<>(SB), T, T \
	VPADDD    counter<>(SB), T, U \
	VADDPS    U, Y, U            \
	VPAND     low12<>(SB), U, U  \
	VPSUBD    binade<>(SB), T, T \
	VPSRLD    $13, T, T          \
	VPADDD    U, T, T            \
	VPCMPGTD  below16<>(SB), Y, U \ // from 2^16 on
	VPBLENDVB U, inf16<>(SB), T, T \
	VPOR      V, T, Y

#define EIGHT(NAME, VALUE) \
	DATA NAME<>+0(SB)/8, VALUE  \
	DATA NAME<>+8(SB)/8, VALUE  \
	DATA NAME<>+16(SB)/8, VALUE \
	DATA NAME<>+24(SB)/8, VALUE \
	GLOBL NAME<>(SB), RODATA|NOPTR, $32

EIGHT(abs, $0x7fffffff7fffffff)
EIGHT(inf, $0x7f8000007f800000)
EIGHT(tiny, $0x33d6bf9533d6bf95)    // 1e-7
EIGHT(binade, $0x3880000038800000)  // f16Binade
EIGHT(counter, $0x0680000006800000) // f16Counter
EIGHT(low12, $0x00000fff00000fff)
EIGHT(below16, $0x477fffff477fffff)
EIGHT(inf16, $0x00007c0000007c00)

// func stepsAffine(b *affineGroups, groups int, largest float32, kind int) (bad int)
TEXT ·stepsAffine(SB), NOSPLIT, $0-40
	MOVQ         b+0(FP), DI
	LEAQ         (DI), SI
	MOVQ         groups+8(FP), BX
	VBROADCASTSS largest+16(FP), Y15
	MOVQ         kind+24(FP), CX
	VPCMPEQD     Y11, Y11, Y11
	VPSLLD       $31, Y11, Y9          // signs
	VPSRLD       $17, Y11, Y8          // 0x7fff
	VMOVDQU      inf<>(SB), Y14        // exponents
	VPXOR        Y13, Y13, Y13         // of those that are not finite, ones
	VPXOR        Y10, Y10, Y10
	CMPQ         CX, $2
	JEQ          loop
	VPSLLD       $16, Y11, Y11         // where an element is
	CMPQ         CX, $1
	JNE          loop
	BROADCAST($0x7c000000, X14, Y14)
	BROADCAST($0x8fffe000, X6, Y6)
	BROADCAST($0x77800000, X7, Y7)     // 2^112

loop:
	VMOVDQU  affineGroups_lo(DI), Y0
	VMOVDQU  affineGroups_hi(DI), Y1
	KEY(VPSRAD, VPSRLD, $31, Y0, Y2)
	KEY(VPSRAD, VPSRLD, $31, Y1, Y3)
	VPAND    Y11, Y0, Y0
	VPAND    Y11, Y1, Y1
	VPAND    Y14, Y0, Y2
	VPAND    Y14, Y1, Y3
	VPCMPEQD Y14, Y2, Y2
	VPCMPEQD Y14, Y3, Y3
	VPOR     Y2, Y13, Y13
	VPOR     Y3, Y13, Y13
	CMPQ     CX, $1
	JNE      wide
	WIDENF16(Y0, Y6, Y7)
	WIDENF16(Y1, Y6, Y7)

wide:
	VSUBPS    Y0, Y1, Y2
	VDIVPS    Y15, Y2, Y2
	VMAXPS    tiny<>(SB), Y2, Y2       // the scale
	VPAND     abs<>(SB), Y0, Y3
	VPAND     abs<>(SB), Y1, Y4
	VCMPPS    $1, Y3, Y4, Y5           // |lo| > |hi|
	VBLENDVPS Y5, Y0, Y1, Y3           // the edge
	VPANDN    Y9, Y5, Y4
	VPXOR     Y4, Y2, Y2
	VDIVPS    Y2, Y3, Y4
	VROUNDPS  $8, Y4, Y4               // steps, ties to even
	VCMPPS    $0, Y10, Y4, Y5          // none
	VDIVPS    Y4, Y3, Y0
	VBLENDVPS Y5, Y2, Y0, Y2
	VPANDN    Y3, Y5, Y3
	VCMPPS    $0, Y10, Y2, Y5
	VBLENDVPS Y5, inf<>(SB), Y2, Y4    // by which all quotients are 0
	VMOVUPS   Y4, affineGroups_scale(DI)
	VMOVUPS   Y3, affineGroups_bias(DI)
	CMPQ      CX, $1
	JEQ       f16
	JGT       f32
	ROUNDBF16(Y2, Y4)
	ROUNDBF16(Y3, Y5)

half:
	VPACKUSDW Y3, Y2, Y2
	VPERMQ    $0xd8, Y2, Y2
	VMOVDQU   X2, affineGroups_scales(SI)
	VEXTRACTI128 $1, Y2, affineGroups_biases(SI)
	JMP       next

f16:
	ROUNDF16(Y2, Y0, Y1, Y4)
	ROUNDF16(Y3, Y0, Y1, Y4)
	JMP half

f32:
	VMOVUPS Y2, affineGroups_scales(SI)
	VMOVUPS Y3, affineGroups_biases(SI)
	ADDQ    $16, SI

next:
	ADDQ      $16, SI
	ADDQ      $32, DI
	SUBQ      $8, BX
	JG        loop
	VMOVMSKPS Y13, AX
	MOVQ      AX, bad+32(FP)
	VZEROUPPER
	RET

// The loads fill two registers with 16 elements: 0-3 and 8-11 in one, 4-7 and 12-15 in the other, as VPACKUSDW takes them.
#define LOADBF16(OFFSET, A, B) \
	VMOVDQU    OFFSET(SI), B \
	VPUNPCKLWD B, Y8, A      \
	VPUNPCKHWD B, Y8, B

#define LOADF16(OFFSET, A, B) \
	LOADBF16(OFFSET, A, B) \
	WIDENF16(A, Y7, Y6)    \
	WIDENF16(B, Y7, Y6)

// func codesAffineBF16(dst, src *byte, b *affineGroups, groups, n, bits int)
TEXT ·codesAffineBF16(SB), NOSPLIT, $0-48
	PREPARE

group:
	PARAMETERS

span:
	LOADBF16(0, Y0, Y1)
	LOADBF16(32, Y2, Y3)
	ADDQ $64, SI
	CODE
	JNE  other
	PACK4
	SUBQ $32, CX
	JNZ  span

next:
	ADDQ $4, R9
	DECQ BX
	JNZ  group
	VZEROUPPER
	RET

other:
	ORDER
	JEQ  eight
	JOIN

spanned:
	SUBQ $32, CX
	JNZ  span
	JMP  next

eight:
	VMOVDQU Y0, (DI)
	ADDQ    $32, DI
	JMP     spanned

// func codesAffineF16(dst, src *byte, b *affineGroups, groups, n, bits int)
TEXT ·codesAffineF16(SB), NOSPLIT, $0-48
	PREPARE
	BROADCAST($0x8fffe000, X7, Y7)
	BROADCAST($0x77800000, X6, Y6) // 2^112

group:
	PARAMETERS

span:
	LOADF16(0, Y0, Y1)
	LOADF16(32, Y2, Y3)
	ADDQ $64, SI
	CODE
	JNE  other
	PACK4
	SUBQ $32, CX
	JNZ  span

next:
	ADDQ $4, R9
	DECQ BX
	JNZ  group
	VZEROUPPER
	RET

other:
	ORDER
	JEQ  eight
	JOIN

spanned:
	SUBQ $32, CX
	JNZ  span
	JMP  next

eight:
	VMOVDQU Y0, (DI)
	ADDQ    $32, DI
	JMP     spanned

// func codesAffineF32(dst, src *byte, b *affineGroups, groups, n, bits int)
TEXT ·codesAffineF32(SB), NOSPLIT, $0-48
	PREPARE

group:
	PARAMETERS

span:
	VMOVUPS     (SI), X0
	VMOVUPS     16(SI), X1
	VMOVUPS     64(SI), X2
	VMOVUPS     80(SI), X3
	VINSERTF128 $1, 32(SI), Y0, Y0
	VINSERTF128 $1, 48(SI), Y1, Y1
	VINSERTF128 $1, 96(SI), Y2, Y2
	VINSERTF128 $1, 112(SI), Y3, Y3
	ADDQ        $128, SI
	CODE
	JNE         other
	PACK4
	SUBQ        $32, CX
	JNZ         span

next:
	ADDQ $4, R9
	DECQ BX
	JNZ  group
	VZEROUPPER
	RET

other:
	ORDER
	JEQ  eight
	JOIN

spanned:
	SUBQ $32, CX
	JNZ  span
	JMP  next

eight:
	VMOVDQU Y0, (DI)
	ADDQ    $32, DI
	JMP     spanned
