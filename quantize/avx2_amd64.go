package quantize

import "golang.org/x/sys/cpu"

// hasAVX2 reports whether the assembly may be called. Tests compare it with the Go functions.
var hasAVX2 = cpu.X86.HasAVX2

// loadBF16AVX2 and the other loaders read n elements, a multiple of 8, as float32 bits. They return the signed maximum,
// the unsigned maximum and the unsigned minimum of the bits before conversion; 16-bit elements are in the upper half.
//
//go:noescape
func loadBF16AVX2(dst *uint32, src *byte, n int) (signed, unsigned, nearest uint32)

//go:noescape
func loadF16AVX2(dst *uint32, src *byte, n int) (signed, unsigned, nearest uint32)

//go:noescape
func loadF32AVX2(dst *uint32, src *byte, n int) (signed, unsigned, nearest uint32)
