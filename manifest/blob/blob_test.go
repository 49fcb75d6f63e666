package blob

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// encoded makes a blob with the layout's arrays, filled with zeros, and the scale of the whole tensor.
func encoded(t *testing.T, l Layout, global float32) []byte {
	t.Helper()
	header, err := l.Header()
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(header)) != l.Size()-l.Bytes() {
		t.Fatalf("the header has %d bytes, the layout says %d", len(header), l.Size()-l.Bytes())
	}
	b := append(header, make([]byte, l.Bytes())...)
	if global != 0 {
		binary.LittleEndian.PutUint32(b[l.Offsets[len(l.Offsets)-1]:], math.Float32bits(global))
	}
	return b
}

func quantized(t *testing.T, name string, q quantize.Type, global float32, shape ...int64) Layout {
	t.Helper()
	parts, err := q.Parts(quantize.BF16, shape)
	if err != nil {
		t.Fatal(err)
	}
	l, err := Quantized{Type: q, Parts: parts, Global: global, Rule: q.Rule()}.Layout(name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// What a layout writes is what reading accepts, for every type.
func TestRoundTrip(t *testing.T) {
	const name = "model.layers.0.mlp.up_proj.weight"
	for _, q := range []quantize.Type{
		0, quantize.ToF32, quantize.Int4, quantize.Int8, quantize.Int4.WithGroup(32), quantize.MXFP4, quantize.MXFP8,
		quantize.NVFP4,
	} {
		var l Layout
		var err error
		if q == 0 {
			l, err = PlainLayout(name, safetensors.BF16, []int64{8, 128})
		} else {
			l = quantized(t, name, q, 0, 8, 128)
		}
		if err != nil {
			t.Fatal(err)
		}
		data := encoded(t, l, 0)
		b, err := Read(bytes.NewReader(data), int64(len(data)), name)
		if err != nil {
			t.Fatalf("%v: %v", q, err)
		}
		got, err := b.Check()
		want := q
		if q.IsCast() {
			want = 0
		}
		if err != nil || got != want {
			t.Errorf("%v: read %v, %v", q, got, err)
		}
		dtype, shape, err := b.Elements(got)
		if err != nil || !slices.Equal(shape, []int64{8, 128}) || dtype != safetensors.BF16 && q != quantize.ToF32 {
			t.Errorf("%v: elements %s %v, %v", q, dtype, shape, err)
		}
		if b.Rule() != l.Metadata[MetaRule] {
			t.Errorf("%v: rule %q", q, b.Rule())
		}
		list, err := List(b.Header)
		if err != nil || len(list) != 1 || list[0].Type != want || list[0].Bytes != l.Bytes() {
			t.Errorf("%v: listed %+v, %v", q, list, err)
		}
	}
}

// The bytes of a header decide the digests of published blobs.
func TestHeaderBytes(t *testing.T) {
	for _, c := range []struct {
		layout Layout
		global float32
		want   string
	}{
		{quantized(t, "w", quantize.Int4.WithGroup(32), 0, 2, 64), 0, "33c84e6f5103c889"},
		{quantized(t, "w", quantize.NVFP4, 0.5, 2, 64), 0.5, "7a6d57c734e34f80"},
		{quantized(t, "w", quantize.MXFP8, 0, 2048, 1024), 0, "56d68f8d17a1a0aa"},
	} {
		sum := sha256.Sum256(encoded(t, c.layout, c.global))
		if got := hex.EncodeToString(sum[:8]); got != c.want {
			header, _ := c.layout.Header()
			t.Errorf("digest %s, want %s: %q", got, c.want, bytes.TrimRight(header, " "))
		}
	}
}

// Alignment: 64 bytes, and a page from 1 MiB on.
func TestAlignment(t *testing.T) {
	for rows, align := range map[int64]int64{2: 64, 4096: 16 << 10} {
		if l := quantized(t, "w", quantize.Int8, 0, rows, 1024); l.Offsets[0]%align != 0 {
			t.Errorf("%d rows: the data starts at %d", rows, l.Offsets[0])
		}
	}
}

func TestCheck(t *testing.T) {
	array := func(name string, d safetensors.DType, shape ...int64) safetensors.Tensor {
		return safetensors.Tensor{Name: name, DType: d, Shape: shape}
	}
	codes, scales := array("w", safetensors.U32, 2, 8), array("w.scale", safetensors.BF16, 2, 1)
	biases, global := array("w.bias", safetensors.BF16, 2, 1), array("w.global_scale", safetensors.F32)
	int4 := map[string]string{MetaType: "int4", MetaGroup: "64"}
	for _, c := range []struct {
		what     string
		arrays   []safetensors.Tensor
		metadata map[string]string
		want     string
	}{
		{"complete", []safetensors.Tensor{codes, scales, biases}, int4, ""},
		{"no tensor", []safetensors.Tensor{scales}, nil, "it does not hold the tensor"},
		{"another tensor", []safetensors.Tensor{codes, scales, biases, array("v", safetensors.F32, 1)}, int4,
			"it also holds v: a model runs only from one blob per tensor"},
		{"only another tensor", []safetensors.Tensor{array("v", safetensors.F32, 1)}, nil,
			"it also holds v: a model runs only from one blob per tensor"},
		{"a longer name", []safetensors.Tensor{codes, scales, biases, array("w.scale.x", safetensors.F32, 1)}, int4,
			"it also holds w.scale.x: a model runs only from one blob per tensor"},
		{"no biases", []safetensors.Tensor{codes, scales}, int4, "w.bias is  [], want BF16 [2 1]"},
		{"no metadata", []safetensors.Tensor{codes, scales, biases}, nil, "it holds scales but no quant_type"},
		{"unknown type", []safetensors.Tensor{codes, scales, biases}, map[string]string{MetaType: "int7"},
			"quant_type: unknown quantization type"},
		{"unknown group", []safetensors.Tensor{codes, scales, biases},
			map[string]string{MetaType: "int4", MetaGroup: "48"}, "quant_type int4 with group_size 48"},
		{"group that is no number", []safetensors.Tensor{codes, scales, biases},
			map[string]string{MetaType: "int4", MetaGroup: "x"}, "quant_type int4 with group_size x"},
		{"zero scale of the whole", []safetensors.Tensor{codes, scales, biases, global}, int4,
			"w.global_scale is 0, want a positive number"},
		{"wrong scale of the whole", []safetensors.Tensor{codes, array("w.global_scale", safetensors.F32, 2)}, int4,
			"w.global_scale is F32 [2], want one F32"},
	} {
		header, placed, err := safetensors.EncodeHeader(c.arrays, c.metadata)
		if err != nil {
			t.Fatal(err)
		}
		data := append(header, make([]byte, placed[len(placed)-1].End)...)
		path := filepath.Join(t.TempDir(), "blob")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := Read(bytes.NewReader(data), int64(len(data)), "w")
		if _, errOpen := Open(path, "w"); (err == nil) != (errOpen == nil) ||
			errOpen != nil && errOpen.Error() != path+": "+err.Error() {
			t.Errorf("%s: Read says %v, Open %v", c.what, err, errOpen)
		}
		if err == nil {
			_, err = b.Check()
		}
		if c.want == "" && err == nil {
			continue
		}
		var wrong *FormatError
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || c.want == "" ||
			!errors.As(err, &wrong) && !strings.Contains(c.what, "unknown type") {
			t.Errorf("%s: error %v, want %q", c.what, err, c.want)
		}
	}
}

// Files of other tools have several tensors, each with metadata of its own.
func TestListSeveral(t *testing.T) {
	header, placed, err := safetensors.EncodeHeader([]safetensors.Tensor{
		{Name: "b", DType: safetensors.U32, Shape: []int64{2, 8}},
		{Name: "b.scale", DType: safetensors.F16, Shape: []int64{2, 1}},
		{Name: "b.bias", DType: safetensors.F16, Shape: []int64{2, 1}},
		{Name: "a.bias", DType: safetensors.F32, Shape: []int64{4}}, // a tensor, not a part of one
	}, map[string]string{"b.quant_type": "int4", "b.group_size": "64"})
	if err != nil {
		t.Fatal(err)
	}
	size := int64(len(header)) + placed[len(placed)-1].End
	h, err := safetensors.ReadHeader(bytes.NewReader(header), size)
	if err != nil {
		t.Fatal(err)
	}
	list, err := List(h)
	if err != nil || len(list) != 2 || list[0].Name != "a.bias" || list[1].Name != "b" {
		t.Fatalf("%+v, %v", list, err)
	}
	if b := list[1]; b.Type != quantize.Int4 || b.DType != safetensors.F16 || !slices.Equal(b.Shape, []int64{2, 64}) ||
		b.Bytes != 64+4+4 {
		t.Errorf("%+v", b)
	}
}

func TestDraftNames(t *testing.T) {
	for name, want := range map[string]string{"draft.w": "w", "w": "", "drafts.w": "", "draft/w": ""} {
		own, draft := CutDraft(name)
		if draft != (want != "") || draft && own != want || IsDraft(name) != draft {
			t.Errorf("%s: %s, %v", name, own, draft)
		}
	}
}

// FuzzRead: whatever the bytes, an accepted blob has arrays of the sizes that its type needs.
func FuzzRead(f *testing.F) {
	parts, _ := quantize.NVFP4.Parts(quantize.BF16, []int64{2, 64})
	l, _ := Quantized{Type: quantize.NVFP4, Parts: parts, Global: 1}.Layout("w")
	header, _ := l.Header()
	f.Add(append(header, bytes.Repeat([]byte{63}, int(l.Bytes()))...))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := Read(bytes.NewReader(data), int64(len(data)), "w")
		if err != nil {
			return
		}
		q, err := b.Check()
		if err != nil || q == 0 {
			return
		}
		dtype, shape, err := b.Elements(q)
		if err != nil {
			t.Fatal(err)
		}
		want, err := q.Parts(quantize.DType(dtype), shape)
		if err != nil || b.Arrays[""].Size() != want.Packed.Size() {
			t.Errorf("%v %v: %d bytes of codes, %v", q, shape, b.Arrays[""].Size(), err)
		}
	})
}
