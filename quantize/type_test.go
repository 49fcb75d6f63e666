package quantize

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseType(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Type
		name string
		note string // a part of it
	}{
		{in: "int4", want: Int4, name: "int4"},
		{in: "INT4", want: Int4, name: "int4"},
		{in: "int4-g64", want: Int4, name: "int4"},
		{in: "int4-G32", want: Int4.WithGroup(32), name: "int4-g32"},
		{in: "int3-g128", want: Int3.WithGroup(128), name: "int3-g128"},
		{in: "int2", want: Int2, name: "int2"},
		{in: "int5", want: Int5, name: "int5"},
		{in: "int6", want: Int6, name: "int6"},
		{in: "int8", want: Int8, name: "int8"},
		{in: "mxfp4", want: MXFP4, name: "mxfp4"},
		{in: "MXFP8", want: MXFP8, name: "mxfp8"},
		{in: "NvFp4", want: NVFP4, name: "nvfp4"},
		{in: "bf16", want: ToBF16, name: "bf16"},
		{in: "F16", want: ToF16, name: "f16"},
		{in: "f32", want: ToF32, name: "f32"},
		{in: "q4", want: Int4, name: "int4", note: "int4"},
		{in: "Q8", want: Int8, name: "int8", note: "int8"},
		{in: "fp4", want: MXFP4, name: "mxfp4", note: "nvfp4"},
		{in: "FP8", want: MXFP8, name: "mxfp8", note: "mxfp8"},
	} {
		got, note, err := ParseType(c.in)
		if err != nil || got != c.want || got.String() != c.name || (note == "") != (c.note == "") ||
			!strings.Contains(note, c.note) {
			t.Errorf("%s: got %s, %q, %v, want %s with a note about %q", c.in, got, note, err, c.name, c.note)
		}
	}
}

func TestParseTypeRefuses(t *testing.T) {
	for _, in := range []string{"", "int7", "int4-g16", "int4-g", "int4-", "-g32", "mxfp4-g32", "q4_K_M", " int4", "int4 ",
		"fp4-g32", "f64", "bf16-g64", "Type(0)"} {
		got, _, err := ParseType(in)
		if !errors.Is(err, ErrType) || got != 0 {
			t.Errorf("%q: got %s, %v, want an error", in, got, err)
			continue
		}
		for _, name := range []string{"int2", "int3", "int4", "int5", "int6", "int8", "-g32", "-g64", "-g128", "mxfp4",
			"mxfp8", "nvfp4", "bf16", "f16", "f32", "q4", "q8", "fp4", "fp8"} {
			if !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: %v: want one line that names %s", in, err, name)
			}
		}
	}
}

func TestTypes(t *testing.T) {
	seen := map[string]bool{}
	for _, q := range Types() {
		if seen[q.String()] {
			t.Errorf("%s twice", q)
		}
		seen[q.String()] = true
		if got, note, err := ParseType(q.String()); got != q || note != "" || err != nil {
			t.Errorf("%s reads as %s, %q, %v", q, got, note, err)
		}
	}
	if len(seen) != 6*3+3+3 {
		t.Errorf("%d types", len(seen))
	}
}

func TestProperties(t *testing.T) {
	type facts struct {
		Mode, Rule         string
		Bits, Group        int
		Cast               bool
		DType              DType
		PerBF16, PerF32    float64
		Source, Pack, S, B int // bytes of a group of BF16
	}
	for q, want := range map[Type]facts{
		Int4:                {"affine", "affine-1", 4, 64, false, "", 4.5, 5, 128, 32, 2, 2},
		Int3.WithGroup(32):  {"affine", "affine-1", 3, 32, false, "", 4, 5, 64, 12, 2, 2},
		Int8.WithGroup(128): {"affine", "affine-1", 8, 128, false, "", 8.25, 8.5, 256, 128, 2, 2},
		MXFP4:               {"mxfp4", "mxfp4-1", 4, 32, false, "", 4.25, 4.25, 64, 16, 1, 0},
		MXFP8:               {"mxfp8", "mxfp8-1", 8, 32, false, "", 8.25, 8.25, 64, 32, 1, 0},
		NVFP4:               {"nvfp4", "nvfp4-1", 4, 16, false, "", 4.5, 4.5, 32, 8, 1, 0},
		ToBF16:              {"", "", 16, 0, true, BF16, 16, 16, 2, 2, 0, 0},
		ToF16:               {"", "", 16, 0, true, F16, 16, 16, 2, 2, 0, 0},
		ToF32:               {"", "", 32, 0, true, F32, 32, 32, 2, 4, 0, 0},
	} {
		s := q.GroupSizes(BF16)
		got := facts{q.Mode(), q.Rule(), q.Bits(), q.Group(), q.IsCast(), q.DType(), q.BitsPerWeight(BF16),
			q.BitsPerWeight(F32), s.Source, s.Packed, s.Scales, s.Biases}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", q, d)
		}
	}
	if Int4.WithGroup(16) != 0 || MXFP4.WithGroup(64) != 0 || Type(0).String() != "" {
		t.Error("a group that no format has makes a type")
	}
}

func TestTypeJSON(t *testing.T) {
	type recipe struct{ A, B Type }
	var got recipe
	if err := json.Unmarshal([]byte(`{"A":"INT3-g32","B":""}`), &got); err != nil ||
		got != (recipe{A: Int3.WithGroup(32)}) {
		t.Errorf("got %v, %v", got, err)
	}
	text, err := json.Marshal(map[Type]Type{NVFP4: ToF16})
	if err != nil || string(text) != `{"nvfp4":"f16"}` {
		t.Errorf("got %s, %v", text, err)
	}
	if err := json.Unmarshal([]byte(`{"A":"int9"}`), &got); !errors.Is(err, ErrType) {
		t.Errorf("got %v", err)
	}
}

func TestParts(t *testing.T) {
	part := func(d DType, shape ...int64) Part { return Part{d, shape} }
	for _, c := range []struct {
		q     Type
		src   DType
		shape []int64
		want  Parts
		bytes int64
	}{
		{Int4, BF16, []int64{3, 128}, Parts{part(U32, 3, 16), part(BF16, 3, 2), part(BF16, 3, 2)}, 192 + 12 + 12},
		{Int3.WithGroup(32), F32, []int64{2, 5, 32},
			Parts{part(U32, 2, 5, 3), part(F32, 2, 5, 1), part(F32, 2, 5, 1)}, 120 + 40 + 40},
		{Int5, F16, []int64{0, 64}, Parts{part(U32, 0, 10), part(F16, 0, 1), part(F16, 0, 1)}, 0},
		{MXFP8, F16, []int64{1, 96}, Parts{part(U32, 1, 24), part(U8, 1, 3), Part{}}, 99},
		{NVFP4, BF16, []int64{2, 48}, Parts{part(U32, 2, 6), part(U8, 2, 3), Part{}}, 54},
		{ToF16, I64, []int64{7}, Parts{Packed: part(F16, 7)}, 14},
		{ToF32, BF16, nil, Parts{Packed: Part{F32, nil}}, 4},
	} {
		got, err := c.q.Parts(c.src, c.shape)
		if d := cmp.Diff(c.want, got); err != nil || d != "" {
			t.Errorf("%s of %v: %v %s", c.q, c.shape, err, d)
		}
		if n := got.Packed.Size() + got.Scales.Size() + got.Biases.Size(); n != c.bytes {
			t.Errorf("%s of %v: %d bytes, want %d", c.q, c.shape, n, c.bytes)
		}
		if c.q.IsCast() {
			continue
		}
		if back, err := c.q.UnpackedShape(got.Packed.Shape); err != nil || !cmp.Equal(back, c.shape) {
			t.Errorf("%s: %v unpacks to %v, %v", c.q, got.Packed.Shape, back, err)
		}
	}
}

func TestPartsRefuses(t *testing.T) {
	for _, c := range []struct {
		q     Type
		src   DType
		shape []int64
		want  error
	}{
		{Int4, BF16, []int64{64}, ErrShape},
		{Int4, BF16, nil, ErrShape},
		{Int4, BF16, []int64{2, 96}, ErrShape},
		{Int4, BF16, []int64{-1, 64}, ErrShape},
		{Int4, BF16, []int64{1 << 40, 1 << 40}, ErrShape},
		{ToF32, BF16, []int64{0, 1 << 62}, ErrShape},
		{NVFP4, BF16, []int64{2, 24}, ErrShape},
		{Int4, I32, []int64{2, 64}, ErrDType},
		{Int4, F64, []int64{2, 64}, ErrDType},
		{ToF16, "C64", []int64{2, 64}, ErrDType},
		{0, BF16, []int64{2, 64}, ErrType},
	} {
		if got, err := c.q.Parts(c.src, c.shape); !errors.Is(err, c.want) {
			t.Errorf("%q of %s %v: got %v, %v, want %v", c.q, c.src, c.shape, got, err, c.want)
		}
	}
	for q, shape := range map[Type][]int64{Int4: {2, 7}, Int3: {2, 9}, MXFP4: {4}, ToF16: {2, 2}, Int8: {-2, 16},
		0: {2, 16}, Int2: {1, 1 << 54}} {
		if got, err := q.UnpackedShape(shape); !errors.Is(err, ErrShape) {
			t.Errorf("%q: %v unpacks to %v, %v", q, shape, got, err)
		}
	}
}

func FuzzParseType(f *testing.F) {
	for _, s := range []string{"int4", "INT3-G32", "fp8", "int", "nvfp4-g16", "int4-g64-g64", "İnt4"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q, _, err := ParseType(s)
		if err != nil {
			if q != 0 || !errors.Is(err, ErrType) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q: %s, %v", s, q, err)
			}
			return
		}
		again, note, err := ParseType(q.String())
		if again != q || note != "" || err != nil {
			t.Fatalf("%q is %s, which reads as %s, %q, %v", s, q, again, note, err)
		}
	})
}
