package blake3

import "golang.org/x/sys/cpu"

// wide reports whether hash16 may be called.
var wide = cpu.X86.HasAVX512F

// hash16 hashes 16 inputs of l.blocks blocks each, l.stride bytes apart, with AVX-512. Their chaining values go to out.
//
//go:noescape
func hash16(out *[lanesWide]value, in *byte, l *lanes)
