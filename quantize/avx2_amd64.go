package quantize

import "golang.org/x/sys/cpu"

// hasAVX2 says whether the functions in assembly may be called. They do what the functions in Go do, and are compared with
// them in tests.
var hasAVX2 = cpu.X86.HasAVX2

// The loaders read n elements, a multiple of 8, as bits of float32. They return three of them, from before the conversion and
// in the upper half where elements have 16 bits: the largest as signed and as unsigned numbers, and the smallest unsigned.
//
//go:noescape
func loadBF16AVX2(dst *uint32, src *byte, n int) (signed, unsigned, nearest uint32)

//go:noescape
func loadF16AVX2(dst *uint32, src *byte, n int) (signed, unsigned, nearest uint32)

//go:noescape
func loadF32AVX2(dst *uint32, src *byte, n int) (signed, unsigned, nearest uint32)
