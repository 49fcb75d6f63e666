package quantize

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
)

// elements writes numbers as elements of type d.
func elements(d DType, v ...float32) []byte {
	out := make([]byte, len(v)*d.Size())
	d.store(out, v)
	return out
}

func buffers(q Type, src []byte, from DType) Blocks {
	return q.NewBlocks(from, len(src)/q.GroupSizes(from).Source)
}

func TestNotFinite(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, from := range targets {
		for _, q := range append(quantized(), ToBF16, ToF16, ToF32) {
			for _, bad := range []float32{inf, -inf, float32(math.NaN()), float32(math.Copysign(math.NaN(), -1))} {
				for _, fill := range []float32{1, -1, 0} {
					for _, at := range []int{0, 131, 255} {
						v := make([]float32, 256)
						for i := range v {
							v[i] = fill
						}
						v[at] = bad
						src := elements(from, v...)
						var e *ElementError
						err := q.Encode(buffers(q, src, from), src, from)
						if !errors.Is(err, ErrNotFinite) || !errors.As(err, &e) || e.Index != int64(at) ||
							math.IsNaN(e.Value) != math.IsNaN(float64(bad)) {
							t.Fatalf("%s of %s, %v at %d among %v: got %v", q, from, bad, at, fill, err)
						}
						if err := CheckFinite(src, from); !errors.As(err, &e) || e.Index != int64(at) {
							t.Fatalf("%s, %v at %d: got %v", from, bad, at, err)
						}
					}
				}
			}
		}
	}
}

func TestElementErrorText(t *testing.T) {
	src := elements(F32, 1, 65519, -65520)
	err := ToF16.Encode(buffers(ToF16, src, F32), src, F32)
	if want := "element 2 is -65520: too large for F16"; fmt.Sprint(err) != want || !errors.Is(err, ErrOverflow) {
		t.Errorf("got %v, want %s", err, want)
	}
	src = elements(BF16, 1, float32(math.NaN()))
	if got, want := fmt.Sprint(CheckFinite(src, BF16)), "element 1 is NaN: not a finite number"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestCheckFinite(t *testing.T) {
	f64 := func(v ...float64) (out []byte) {
		for _, x := range v {
			out = le.AppendUint64(out, math.Float64bits(x))
		}
		return out
	}
	for _, c := range []struct {
		d    DType
		src  []byte
		want int64 // -1: none
	}{
		{BF16, elements(BF16, math.MaxFloat32/2, -1, 0, 5e-39, 3), -1},
		{BF16, []byte{0x7f, 0x7f, 0x7f, 0xff, 0, 0, 0, 0, 0x80, 0x7f}, 4},
		{F16, elements(F16, 65504, -65504, 1e-7, 0, 1, 2, 3), -1},
		{F32, elements(F32, math.MaxFloat32, -math.MaxFloat32, 1e-45), -1},
		{F64, f64(math.MaxFloat64, -5e-324, 0), -1},
		{F64, f64(1, 2, math.Inf(-1), math.NaN()), 2},
		{I64, []byte{255, 255, 255, 255, 255, 255, 255, 127}, -1},
		{U16, []byte{0x80, 0x7f}, -1},
		{BF16, nil, -1},
	} {
		err, got := CheckFinite(c.src, c.d), int64(-1)
		if e := (*ElementError)(nil); errors.As(err, &e) {
			got = e.Index
		}
		if got != c.want {
			t.Errorf("%s %x: got %v, want index %d", c.d, c.src, err, c.want)
		}
	}
}

// A number of 64 bits beyond float32 is too large, not infinite.
func TestCastOverflow(t *testing.T) {
	src := le.AppendUint64(nil, math.Float64bits(-1e39))
	err := ToF32.Encode(buffers(ToF32, src, F64), src, F64)
	if !errors.Is(err, ErrOverflow) || errors.Is(err, ErrNotFinite) {
		t.Errorf("got %v", err)
	}
	src = le.AppendUint64(nil, 1<<40)
	if err := ToF16.Encode(buffers(ToF16, src, I64), src,
		I64); fmt.Sprint(err) != "element 0 is 1.09951e+12: too large for F16" {
		t.Errorf("got %v", err)
	}
	if err := ToBF16.Encode(buffers(ToBF16, src, I64), src, I64); err != nil {
		t.Errorf("got %v", err)
	}
}

// Elements of all types become float32. Those of other types than F32 must be finite.
func TestFloat32s(t *testing.T) {
	for _, test := range []struct {
		from DType
		src  []byte
		want error
	}{
		{F32, []byte{0, 0, 0xc0, 0x3f, 0, 0, 0, 0xc0}, nil},
		{BF16, []byte{0xc0, 0x3f, 0, 0xc0}, nil},
		{F16, []byte{0, 0x3e, 0, 0xc0}, nil},
		{BF16, []byte{0xc0, 0x7f}, ErrNotFinite},
		{F16, []byte{0, 0x3e, 0}, ErrLength},
	} {
		got, err := Float32s(test.src, test.from)
		if !errors.Is(err, test.want) || err == nil && !slices.Equal(got, []float32{1.5, -2}) {
			t.Errorf("%s % x: %v, %v, want error %v", test.from, test.src, got, err, test.want)
		}
	}
}

func TestCastTypes(t *testing.T) {
	dst := make([]byte, 8)
	for _, c := range []struct {
		to, from DType
		dst, src []byte
		want     error
	}{
		{F64, F32, dst, dst[:4], ErrDType},
		{I8, F32, dst, dst[:4], ErrDType},
		{F32, "F8_E4M3", dst, dst[:2], ErrDType},
		{F32, BF16, dst, dst[:3], ErrLength},
		{F32, BF16, dst[:7], dst[:4], ErrLength},
		{F32, BF16, dst, dst[:6], ErrLength},
		{F32, Bool, dst, dst[:2], nil},
	} {
		if err := Cast(c.dst, c.to, c.src, c.from); !errors.Is(err, c.want) {
			t.Errorf("%s to %s: got %v, want %v", c.from, c.to, err, c.want)
		}
	}
	src := []byte{0, 1, 2}
	got := make([]byte, 6)
	if err := Cast(got, BF16, src, Bool); err != nil || string(got) != string(elements(BF16, 0, 1, 1)) {
		t.Errorf("got %x, %v", got, err)
	}
}

func TestLengths(t *testing.T) {
	src := make([]byte, 4*128)
	short := func(b []byte) []byte { return b[:len(b)-1] }
	for _, q := range quantized() {
		good := buffers(q, src, BF16)
		all := []Blocks{
			{short(good.Packed), good.Scales, good.Biases},
			{append(good.Packed, 0), good.Scales, good.Biases},
			{good.Packed, short(good.Scales), good.Biases},
			{good.Packed, append(good.Scales, 0), good.Biases},
			{good.Packed, good.Scales, append(good.Biases, 0)},
			{nil, nil, nil},
		}
		for _, b := range all {
			if err := q.Encode(b, src, BF16); !errors.Is(err, ErrLength) {
				t.Errorf("%s: got %v", q, err)
			}
			if err := q.Decode(src, BF16, b, BF16); !errors.Is(err, ErrLength) {
				t.Errorf("%s: got %v", q, err)
			}
		}
		if err := q.Encode(good, src[:len(src)-2], BF16); !errors.Is(err, ErrLength) {
			t.Errorf("%s: got %v", q, err)
		}
		if err := q.Decode(src[:len(src)-2], BF16, good, BF16); !errors.Is(err, ErrLength) {
			t.Errorf("%s: got %v", q, err)
		}
		if err := q.Encode(good, src, F64); !errors.Is(err, ErrDType) {
			t.Errorf("%s: got %v", q, err)
		}
		if err := q.Decode(src, I32, good, BF16); !errors.Is(err, ErrDType) {
			t.Errorf("%s: got %v", q, err)
		}
		if err := q.Encode(Blocks{}, nil, BF16); err != nil {
			t.Errorf("%s of nothing: %v", q, err)
		}
	}
	if err := Int4.Decode(src, BF16, buffers(Int4, src, BF16), "I8"); !errors.Is(err, ErrDType) {
		t.Errorf("got %v", err)
	}
	if err := ToF16.Decode(src, BF16, Blocks{Packed: src}, BF16); !errors.Is(err, ErrType) {
		t.Errorf("got %v", err)
	}
	if err := Type(0).Encode(Blocks{}, src, BF16); !errors.Is(err, ErrType) {
		t.Errorf("got %v", err)
	}
}

// Nothing but errors is allocated.
func TestAllocations(t *testing.T) {
	src := make([]byte, 2*1024)
	for i := range src {
		src[i] = byte(mix(uint64(i))) & 0x3f
	}
	for _, q := range Types() {
		b := buffers(q, src, BF16)
		if n := testing.AllocsPerRun(10, func() { q.Encode(b, src, BF16) }); n != 0 {
			t.Errorf("encoding %s: %v allocations", q, n)
		}
		if q.IsCast() {
			continue
		}
		if n := testing.AllocsPerRun(10, func() { q.Decode(src, F16, b, BF16) }); n != 0 {
			t.Errorf("decoding %s: %v allocations", q, n)
		}
	}
}

// step returns how far apart the numbers near x are that a group can hold, given its largest magnitude and its range.
func step(q Type, x, peak, width float64) float64 {
	if q.Mode() == "affine" {
		return width / float64(int(1)<<q.Bits()-1)
	}
	scale := math.Exp2(math.Ceil(math.Log2(peak / 6)))
	if q == NVFP4 {
		scale = peak / 6
	}
	if q == MXFP8 {
		scale = math.Exp2(math.Ceil(math.Log2(peak / 448)))
		return scale * math.Exp2(max(math.Floor(math.Log2(math.Abs(x)/scale)), -6)-3)
	}
	return scale * math.Exp2(max(math.Floor(math.Log2(math.Abs(x)/scale)), 0)-1)
}

// What comes back is within half a step, as far as numbers of the source's type can tell.
func FuzzEncode(f *testing.F) {
	for k := range uint64(6) {
		var seed []byte
		for i := range uint64(64) {
			seed = le.AppendUint64(seed, mix(i+k<<20))
		}
		f.Add(seed, byte(k), byte(5*k), false)
		f.Add(seed, byte(k), byte(5*k+2), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, kind, format byte, tame bool) {
		from := targets[int(kind)%len(targets)]
		q := quantized()[int(format)%len(quantized())]
		src := make([]byte, 128*from.Size())
		copy(src, data)
		v := make([]float32, 128)
		if tame { // of the sizes that weights have
			for i := range v {
				v[i] = float32(int16(le.Uint16(src[2*i:]))) / (1 << 18)
			}
			src = elements(from, v...)
		}
		from.widen(v, src)
		b := buffers(q, src, from)
		if err := q.Encode(b, src, from); err != nil {
			e := (*ElementError)(nil)
			if !errors.As(err, &e) || CheckFinite(src, from) == nil {
				t.Fatalf("%s of %s: %v", q, from, err)
			}
			return
		}
		got := make([]byte, 128*4)
		if err := q.Decode(got, F32, b, from); err != nil {
			t.Fatal(err)
		}
		if !tame {
			return
		}
		out := make([]float32, 128)
		widenF32(out, got)
		ulp := map[DType]float64{BF16: 0x1p-8, F16: 0x1p-11, F32: 0x1p-24}[from]
		for g := 0; g < len(v); g += q.Group() {
			lo, hi := v[g], v[g]
			for _, x := range v[g : g+q.Group()] {
				lo, hi = min(lo, x), max(hi, x)
			}
			peak, width := math.Max(math.Abs(float64(lo)), math.Abs(float64(hi))), float64(hi)-float64(lo)
			for i := g; i < g+q.Group(); i++ {
				x, y := float64(v[i]), float64(out[i])
				// The scale of affine formats fits the end farther from zero: up to half a step is lost at the other end.
				// Scale, product and sum are rounded to the source's type, that of nvfp4 to three bits.
				allowed := step(q, x, peak, width)/2 + 1e-6
				switch {
				case q.Mode() == "affine":
					allowed += step(q, x, peak, width)/2 + 4*ulp*(width+peak)
					if from == F16 { // whose scales may be subnormal, 2^-24 apart
						allowed += 0x1p-24 * float64(int(1)<<q.Bits())
					}
				case q == NVFP4:
					allowed = allowed*1.07 + peak/16 + 6*0x1p-10
				default:
					allowed += peak * 2 * ulp
					if from == F16 { // in which the quotient that makes the scale may be subnormal
						allowed += 448 * 0x1p-25
					}
				}
				if math.Abs(x-y) > allowed {
					t.Fatalf("%s of %s: %v became %v, want within %v\ngroup %v\n  got %v", q, from, x, y, allowed, v[g:g+q.Group()],
						out[g:g+q.Group()])
				}
			}
		}
	})
}

// Any bytes decode to something.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{1, 2, 3, 255, 127, 128}, byte(0), byte(3))
	f.Fuzz(func(t *testing.T, data []byte, kind, format byte) {
		scales := targets[int(kind)%len(targets)]
		q := quantized()[int(format)%len(quantized())]
		size := q.GroupSizes(scales)
		raw := make([]byte, size.Packed+size.Scales+size.Biases)
		copy(raw, data)
		b := Blocks{raw[:size.Packed], raw[size.Packed:][:size.Scales], raw[size.Packed+size.Scales:]}
		for _, to := range targets {
			if err := q.Decode(make([]byte, q.Group()*to.Size()), to, b, scales); err != nil {
				t.Fatal(err)
			}
		}
	})
}
