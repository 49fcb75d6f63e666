package weighted

import "golang.org/x/sys/cpu"

// hasAVX2 reports whether the assembly may be called. Tests compare it with the Go functions.
var hasAVX2 = cpu.X86.HasAVX2

// sumsAVX2 is [sums]. n is a multiple of 4.
//
//go:noescape
func sumsAVX2(out *[3]lanes, x, d *float64, n int, bias, by, limit float64)

// distanceAVX2 is [distance]. n is a multiple of 4.
//
//go:noescape
func distanceAVX2(out *lanes, x, d *float64, n int, bias, scale, by, limit float64)

// moveAVX2 is [move]. n is a multiple of 4.
//
//go:noescape
func moveAVX2(later *float64, n int, u *float64, stride int, e *float64, rows int)
