package quantize

// Affine groups are encoded in batches so that scales are vectorized too: first the ends of all groups, then their
// scales and biases, then the codes. Tests compare the assembly with [Type.encodeAffineGo].

// affineGroups is the state of a batch.
type affineGroups struct {
	//lint:ignore U1000 used in assembly
	// minimum and maximum per group, ordered as integers; 16-bit elements are in the upper halves
	lo, hi [affineBatch]uint32
	//lint:ignore U1000 used in assembly
	scale, bias    [affineBatch]float32 // float32 values that make the codes; a zero scale is stored as infinity
	scales, biases [4 * affineBatch]byte
	join           [16]byte // shuffle that joins the codes of two 64-bit words
}

const affineBatch = 32

// endsAffine16 and endsAffine32 find the minimum and maximum of groups of n elements; n is a multiple of 32.
//
//go:noescape
func endsAffine16(b *affineGroups, src *byte, groups, n int)

//go:noescape
func endsAffine32(b *affineGroups, src *byte, groups, n int)

// stepsAffine computes affineStep for groups, rounded up to a multiple of 8, and rounds the stored values. largest is
// the largest code. It returns whether an end is not finite.
//
//go:noescape
func stepsAffine(b *affineGroups, groups int, largest float32, kind int) (bad int)

// codesAffineBF16 and the others are the last pass, which writes packed codes. Except for 4 and 8 bits, it may write up
// to 12 bytes past the end.
//
//go:noescape
func codesAffineBF16(dst, src *byte, b *affineGroups, groups, n, bits int)

//go:noescape
func codesAffineF16(dst, src *byte, b *affineGroups, groups, n, bits int)

//go:noescape
func codesAffineF32(dst, src *byte, b *affineGroups, groups, n, bits int)

// Element types for stepsAffine.
const (
	kindBF16 = iota
	kindF16
	kindF32
)

func (t Type) encodeAffineAVX2(dst Blocks, src []byte, from DType) error {
	var (
		b     affineGroups
		spare [affineBatch*128*6/8 + 12]byte // room for the bytes written past the end
		size  = t.GroupSizes(from)
		bits  = t.Bits()
		n     = t.Group()
		first = 0
	)
	for i := range min(2*bits, len(b.join)) {
		b.join[i] = byte(i/bits*8 + i%bits)
	}
	for len(src) > 0 {
		groups := min(affineBatch, len(src)/size.Source)
		in := src[:groups*size.Source]
		kind := kindF32
		switch from {
		case BF16:
			kind = kindBF16
			endsAffine16(&b, &in[0], groups, n)
		case F16:
			kind = kindF16
			endsAffine16(&b, &in[0], groups, n)
		default:
			endsAffine32(&b, &in[0], groups, n)
		}
		if stepsAffine(&b, groups, float32(int(1)<<bits-1), kind) != 0 {
			return notFinite(in, from, first)
		}
		packed := dst.Packed[:groups*size.Packed]
		out := packed
		if bits != 4 && bits != 8 {
			out = spare[:]
		}
		switch kind {
		case kindBF16:
			codesAffineBF16(&out[0], &in[0], &b, groups, n, bits)
		case kindF16:
			codesAffineF16(&out[0], &in[0], &b, groups, n, bits)
		default:
			codesAffineF32(&out[0], &in[0], &b, groups, n, bits)
		}
		if bits != 4 && bits != 8 {
			copy(packed, out)
		}
		copy(dst.Scales[:groups*size.Scales], b.scales[:])
		copy(dst.Biases[:groups*size.Biases], b.biases[:])
		dst = Blocks{dst.Packed[len(packed):], dst.Scales[groups*size.Scales:], dst.Biases[groups*size.Biases:]}
		src = src[len(in):]
		first += groups * n
	}
	return nil
}
