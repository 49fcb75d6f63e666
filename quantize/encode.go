package quantize

import "fmt"

// Blocks holds the arrays of an encoded tensor, or the same range of groups of each. Arrays that a format lacks are
// empty.
type Blocks struct{ Packed, Scales, Biases []byte }

// after returns the blocks behind the first group.
func (b Blocks) after(size Sizes) Blocks {
	return Blocks{b.Packed[size.Packed:], b.Scales[size.Scales:], b.Biases[size.Biases:]}
}

// check compares the lengths with a number of groups.
func (b Blocks) check(t Type, size Sizes, groups int) error {
	for _, p := range []struct {
		what      string
		have, one int
	}{{"packed", len(b.Packed), size.Packed}, {"scales", len(b.Scales), size.Scales},
		{"biases", len(b.Biases), size.Biases}} {
		if p.have != groups*p.one {
			return fmt.Errorf("%w: %s of %d groups of %s: %d bytes, want %d", ErrLength, p.what, groups, t, p.have, groups*p.one)
		}
	}
	return nil
}

// Encode encodes src, a whole number of groups of elements of type from. dst must have exactly the bytes of
// [Type.GroupSizes] times the number of groups. A cast goes to Packed.
//
// A NaN or infinity in src, or, in a cast, a number out of the target's range, is an [ElementError].
//
// Surprises of the rules, which follow the engine:
//   - affine: codes are made with the float32 scale; the stored scale is rounded to the source's type. A group of zeros
//     has the scale -1e-7. A range beyond float32 gives an infinite scale, and codes that decode to NaN. Equal elements
//     from about 3.4e31 on give the scale -0; they decode correctly.
//   - mxfp4, mxfp8: the scale is the smallest power of two not below the largest magnitude over 6 or 448. The quotient
//     is rounded to the source's type, so the scale may be too small by that rounding: in F16, where small quotients
//     are subnormal, mxfp8 may clip magnitudes below 0.001 by some percent, and below 0.0001 by up to a third. A group
//     whose quotient is 0 has the scale 1. A scale below 2^-127 is stored modulo 256 and decodes to a huge value.
//   - mxfp4, nvfp4: a tie goes to the code nearer to zero, and there is no code for -0; mxfp8 keeps the sign of zeros.
//   - nvfp4: a group below 6*2^-10 becomes zero, and magnitudes above 2688 are clipped; far above that, codes are too
//     small, down to 0.
func (t Type) Encode(dst Blocks, src []byte, from DType) error {
	if err := t.check(from); err != nil {
		return err
	}
	size := t.GroupSizes(from)
	if len(src)%size.Source != 0 {
		return fmt.Errorf("%w: %d bytes of %s are not a whole number of groups of %s", ErrLength, len(src), from, t)
	}
	if err := dst.check(t, size, len(src)/size.Source); err != nil {
		return err
	}
	switch t.mode() {
	case modeCast:
		return t.encodeCast(dst.Packed, src, from)
	case modeAffine:
		return t.encodeAffine(dst, src, from)
	case modeMX:
		return t.encodeMX(dst, src, from)
	}
	return t.encodeNV(dst, src, from)
}

// Decode writes the values of the codes in src as elements of type to: BF16, F16 or F32. scales is the type of an
// affine format's scales and biases; other formats ignore it. dst must hold a whole number of groups. Casts are not
// decoded; use [Cast].
//
// The arithmetic follows the engine: affine formats compute in the type of the scales, others in type to.
func (t Type) Decode(dst []byte, to DType, src Blocks, scales DType) error {
	if t.mode() < modeAffine {
		return fmt.Errorf("%w: %q has nothing to decode", ErrType, t)
	}
	if !to.isTarget() {
		return fmt.Errorf("%w: decoding gives BF16, F16 or F32, not %s", ErrDType, to)
	}
	if t.mode() != modeAffine {
		scales = to
	} else if !scales.isTarget() {
		return fmt.Errorf("%w: scales of %s are BF16, F16 or F32, not %s", ErrDType, t, scales)
	}
	width := to.Size() * t.Group()
	if len(dst)%width != 0 {
		return fmt.Errorf("%w: %d bytes of %s are not a whole number of groups of %s", ErrLength, len(dst), to, t)
	}
	if err := src.check(t, t.GroupSizes(scales), len(dst)/width); err != nil {
		return err
	}
	switch {
	case t.mode() == modeAffine:
		t.decodeAffine(dst, to, src, scales)
	case t.Bits() == 8:
		decodeMXFP8(dst, to, src)
	default:
		t.decodeFP4(dst, to, src)
	}
	return nil
}

// notFinite returns the error for a group that contains a NaN or infinity. first is the index of its first element.
func notFinite(group []byte, d DType, first int) error {
	i := indexNotFinite(group, d)
	return &ElementError{int64(first + i), valueAt(group, d, i), ErrNotFinite}
}
