package quantize

import "math"

// e2m1 maps codes to values; bit 3 is the sign.
var e2m1 = [16]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6, float32(math.Copysign(0, -1)), -0.5, -1, -1.5, -2, -3, -4, -6}

// nearestE2M1 is the reference implementation: the first code with the nearest value, by differences rounded to
// float32.
func nearestE2M1(x float32) uint8 {
	best, least := uint8(0), abs(x-e2m1[0])
	for i, v := range e2m1 {
		if d := abs(x - v); d < least {
			best, least = uint8(i), d
		}
	}
	return best
}

// Below 2^20 those differences distinguish all codes, so the code follows from the seven bounds between neighbours.
// Each bound belongs to the code nearer to zero, and -0 has no code. The bounds are 0.25 to 5 and have at most two
// mantissa bits, so the quarter of a binade that contains a magnitude, upper end included, determines the code.
// Quarters are counted from the one that ends at 0.25, which covers everything below. Bit 5 of an index is the sign.
const (
	quarterShift = 21
	firstQuarter = 125<<23 + 1 - 1<<quarterShift
	quarterLimit = 56 // upper end of the last of 32 quarters
)

var quarters = func() (table [64]uint8) {
	for i := range 32 {
		upper := math.Float32frombits(uint32(125<<23 + i<<quarterShift))
		table[i] = nearestE2M1(upper)
		table[32+i] = nearestE2M1(-upper)
	}
	return table
}()

// quarter returns the code of an element. from is firstQuarter shifted by the exponent of the scale.
func quarter(w uint32, from int32) uint32 {
	i := max((int32(w&^signBit)-from)>>quarterShift, 0)
	return uint32(quarters[(uint32(i)|w>>26&32)&63])
}

// packE2M1 encodes elements divided by 2^exp. No element is subnormal, and the quotients reach at most quarterLimit.
func packE2M1(dst []byte, w []uint32, exp int) {
	from := int32(firstQuarter + exp<<23)
	for ; len(w) >= 8 && len(dst) >= 4; w, dst = w[8:], dst[4:] {
		w := (*[8]uint32)(w)
		le.PutUint32(dst, quarter(w[0], from)|quarter(w[1], from)<<4|quarter(w[2], from)<<8|quarter(w[3], from)<<12|
			quarter(w[4], from)<<16|quarter(w[5], from)<<20|quarter(w[6], from)<<24|quarter(w[7], from)<<28)
	}
}

// decodeFP4 decodes whole groups of mxfp4 and nvfp4, computing in the target type.
func (t Type) decodeFP4(dst []byte, to DType, src Blocks) {
	var (
		table  [16]float32
		values [32]float32
		group  = t.Group()
		size   = t.GroupSizes(to)
		width  = to.Size() * group
	)
	for ; len(dst) > 0; dst, src = dst[width:], src.after(size) {
		scale := e4m3[src.Scales[0]]
		if t != NVFP4 {
			scale = to.Round(powerOf2(int(src.Scales[0]) - 127))
		}
		for i, v := range e2m1 {
			table[i] = product(v, scale)
		}
		for i, c := range src.Packed[:size.Packed] {
			pair := (*[2]float32)(values[2*i:])
			pair[0], pair[1] = table[c&15], table[c>>4]
		}
		to.store(dst, values[:group])
	}
}
