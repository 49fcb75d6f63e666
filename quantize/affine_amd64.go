package quantize

// Affine groups are coded in batches, so that scales too are computed eight at a time: the ends of all groups, then
// their steps, then the codes. The functions in assembly do what [Type.encodeAffineGo] does, and are compared with it
// in tests.

// affineGroups is the state of a batch.
type affineGroups struct {
	//lint:ignore U1000 used in assembly
	lo, hi [affineBatch]uint32 // the ends of groups, ordered like integers; elements of 16 bits in the upper halves
	//lint:ignore U1000 used in assembly
	scale, bias    [affineBatch]float32 // what codes are made with; a scale of 0 is infinite here
	scales, biases [4 * affineBatch]byte
	join           [16]byte // which bytes of two words of 64 bits have codes
}

const affineBatch = 32

// endsAffine16 and endsAffine32 find the ends of groups of n elements, a multiple of 32.
//
//go:noescape
func endsAffine16(b *affineGroups, src *byte, groups, n int)

//go:noescape
func endsAffine32(b *affineGroups, src *byte, groups, n int)

// stepsAffine is affineStep for groups, as if they were a multiple of 8, and rounds what is stored. It returns whether an end is
// not finite. Largest is the largest code.
//
//go:noescape
func stepsAffine(b *affineGroups, groups int, largest float32, kind int) (bad int)

// The last pass writes packed codes, and where they have neither 4 nor 8 bits up to 12 bytes more.
//
//go:noescape
func codesAffineBF16(dst, src *byte, b *affineGroups, groups, n, bits int)

//go:noescape
func codesAffineF16(dst, src *byte, b *affineGroups, groups, n, bits int)

//go:noescape
func codesAffineF32(dst, src *byte, b *affineGroups, groups, n, bits int)

// The kinds of elements that stepsAffine knows.
const (
	kindBF16 = iota
	kindF16
	kindF32
)

func (t Type) encodeAffineAVX2(dst Blocks, src []byte, from DType) error {
	var (
		b     affineGroups
		spare [affineBatch*128*6/8 + 12]byte // where there is room for what is written too much
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
