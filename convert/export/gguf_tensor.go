package export

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch"
	mapping "github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/convert/gguf"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/ggml"
	"github.com/ingotml/ingot/safetensors"
)

// addAll adds the model's tensors, in the order of the table.
func (x *ggufFile) addAll(g mapping.Map, config []byte) error {
	x.stored = map[string]*storedTensor{}
	var have []table.TensorInfo
	for _, w := range x.src.Tensors() {
		s, err := newStored(w)
		if err != nil {
			return err
		}
		x.stored[w.Name] = s
		have = append(have, table.TensorInfo{Name: w.Name, DType: string(w.DType), Shape: w.Shape, File: w.Path})
	}
	tab := x.src.Model.Table()
	written, err := tab.Write(have,
		table.WriteOptions{Style: table.ForGGUF, Published: arch.Published(modelTypeOf(config))})
	if err != nil {
		return err
	}
	others := map[string]bool{}
	for _, w := range written {
		if part := otherPart(tab, w.Name); part != "" {
			others[part] = true
			continue
		}
		to, ok := g.FindTo(w.Name)
		if !ok || w.Add != 0 {
			return fmt.Errorf("tensor %s: %w: a GGUF file of a %s model has no place for it", w.Name, ErrExport, g.Architecture)
		}
		if err := x.add(g, w, to); err != nil {
			return err
		}
	}
	for _, part := range slices.Sorted(maps.Keys(others)) {
		x.notes = append(x.notes, part+" is left out")
	}
	return nil
}

// otherPart returns what a tensor belongs to that is not the text model's layers; "" = it is one of theirs.
func otherPart(t table.Table, name string) string {
	switch {
	case t.PartOf(name) == "mtp":
		return "the head that predicts further tokens"
	case strings.Contains(name, "vision") || strings.Contains(name, "visual"):
		return "the vision tower, for which llama.cpp has another file,"
	}
	return ""
}

func (x *ggufFile) add(g mapping.Map, w table.Written, to mapping.Tensor) error {
	first := x.stored[w.From[0].Tensor]
	for _, p := range w.From {
		if s := x.stored[p.Tensor]; s.Quant != first.Quant || s.DType != first.DType || s.Global != first.Global {
			return fmt.Errorf("tensor %s: %w: its parts have different types; export it with --type", w.Name, ErrExport)
		}
	}
	t := ggufTensor{
		Tensor: gguf.Tensor{Name: to.Name, Shape: shapeIn(x.src.Model, to, w.Shape)},
		from:   arrayReader{from: w.From, stored: x.stored, source: first, to: safetensors.F32},
	}
	if to.Op.Rows != nil {
		t.rows = to.Op.Rows(x.src.Model, w.Shape[0])
	}
	var size int64
	if to.Op.Blocks != nil {
		t.blocks, size = to.Op.Blocks(x.src.Model, t.Shape[len(t.Shape)-1])
	}
	if to.Op.Back != nil {
		x.addChanged(t, to.Op.Back)
		return nil
	}
	if g.Split != nil {
		if pieces := g.Split(x.src.Model, to.Name); pieces != nil {
			x.addPieces(t, pieces)
			return nil
		}
	}
	var err error
	if t.Type, t.from.part, err = x.typeOf(t, size); err != nil {
		return err
	}
	t.from.kind = t.Type
	x.tensors = append(x.tensors, t)
	if t.from.part == composed && first.Global != 0 {
		raw := binary.LittleEndian.AppendUint32(nil, math.Float32bits(first.Global))
		x.tensors = append(x.tensors, ggufTensor{data: raw, Tensor: gguf.Tensor{
			Name: strings.TrimSuffix(to.Name, ".weight") + ".scale", Type: ggml.F32, Shape: []int64{1},
		}})
	}
	return nil
}

// elements reads a tensor as float32.
func (t ggufTensor) elements(ctx context.Context) ([]float32, error) {
	t.Type, t.from.part, t.from.kind = ggml.F32, encoded, ggml.F32
	stream, err := t.from.open(ctx)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	r := io.Reader(stream)
	if t.rows != nil || t.blocks != nil {
		if r, err = move(stream, t); err != nil {
			return nil, err
		}
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	out := make([]float32, len(data)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out, nil
}

// addChanged adds a tensor whose elements the converter changes, as F32.
func (x *ggufFile) addChanged(t ggufTensor, change func(float32) float32) {
	source := t
	t.Type = ggml.F32
	t.compute = func(ctx context.Context) ([]byte, error) {
		list, err := source.elements(ctx)
		if err != nil {
			return nil, err
		}
		for i, v := range list {
			list[i] = change(v)
		}
		out := make([]byte, 4*len(list))
		return out, ggml.F32.Encode(out, list)
	}
	x.tensors = append(x.tensors, t)
}

// addPieces adds the tensors that the converter makes of one.
func (x *ggufFile) addPieces(source ggufTensor, pieces []mapping.Piece) {
	for _, piece := range pieces {
		t := ggufTensor{Tensor: gguf.Tensor{Name: piece.Name, Shape: piece.Shape}}
		if t.Type = x.kind; x.kind == ggml.F32 || !wholeBlocks(x.kind, t.Shape) {
			t.Type = plainType(source.from.source)
		}
		t.compute = func(ctx context.Context) ([]byte, error) {
			whole, err := source.elements(ctx)
			if err != nil {
				return nil, err
			}
			n := int64(1)
			for _, d := range t.Shape {
				n *= d
			}
			list := make([]float32, n)
			for i := range list {
				list[i] = whole[piece.From(int64(i))]
			}
			out := make([]byte, t.bytes())
			return out, t.Type.Encode(out, list)
		}
		x.tensors = append(x.tensors, t)
	}
}

// plainType returns the type for elements that are not encoded otherwise.
func plainType(t *storedTensor) ggml.Type {
	switch {
	case t.Quant == 0 && t.DType == safetensors.F32:
		return ggml.F32
	case t.DType == safetensors.BF16:
		return ggml.BF16
	}
	return ggml.F16
}

// shapeIn returns the shape of a tensor in the file.
func shapeIn(m arch.Model, to mapping.Tensor, shape []int64) []int64 {
	if to.Shape != nil {
		return to.Shape(m, shape)
	}
	return squeezed(shape)
}

// squeezed drops the dimensions of 1 that the kernels of convolutions and the gates of shared experts have.
func squeezed(shape []int64) []int64 {
	if len(shape) == 2 && shape[0] == 1 {
		return shape[1:]
	}
	if len(shape) != 3 || shape[1] != 1 && shape[2] != 1 {
		return shape
	}
	return []int64{shape[0], shape[1] * shape[2]}
}

// typeOf returns the type of a tensor, and whether it is composed of codes or encoded. Its blocks must be whole in
// moved columns of the given size, if it is not 0.
func (x *ggufFile) typeOf(t ggufTensor, moved int64) (ggml.Type, arrayPart, error) {
	wholeBlocks := func(kind ggml.Type, shape []int64) bool {
		block, _ := kind.Block()
		return wholeBlocks(kind, shape) && moved%int64(block) == 0
	}
	first := t.from.source
	if !isMatrix(t.Tensor) {
		return ggml.F32, encoded, nil
	}
	plain := ggml.F16
	if first.DType == safetensors.BF16 {
		plain = ggml.BF16
	}
	want := x.kind
	if isEnd(t.Name) && slices.Contains([]ggml.Type{ggml.MXFP4, ggml.Q4_0, ggml.Q4_1}, want) {
		want = ggml.Q8_0 // as llama.cpp's quantizer keeps them larger
	}
	if first.Quant != 0 {
		for _, kind := range ggml.Holders(first.Quant) {
			if x.kind != ggml.F32 && kind != want || !wholeBlocks(kind, t.Shape) {
				continue
			}
			if holds, err := x.holds(kind, t); err != nil || holds {
				return kind, composed, err
			}
		}
	}
	switch {
	case want != ggml.F32 && wholeBlocks(want, t.Shape):
		return want, encoded, nil
	case want != ggml.F32 || first.Quant != 0:
		x.wider++
		return plain, encoded, nil
	case first.DType == safetensors.F32:
		return ggml.F32, encoded, nil
	}
	return plain, encoded, nil
}

// wholeBlocks reports whether rows are whole blocks of a type.
func wholeBlocks(kind ggml.Type, shape []int64) bool {
	block, _ := kind.Block()
	return shape[len(shape)-1]%int64(block) == 0
}

// holds reports whether a type holds all groups of a tensor. It reads the scales and biases.
func (x *ggufFile) holds(kind ggml.Type, t ggufTensor) (bool, error) {
	if t.from.source.Quant.Mode() != "affine" {
		return true, nil
	}
	var lists [2][]byte
	for i, part := range []arrayPart{scalesPart, biasesPart} {
		r := t.from
		r.part = part
		stream, err := r.open(context.Background())
		if err != nil {
			return false, err
		}
		data, err := io.ReadAll(stream)
		_ = stream.Close()
		if err != nil {
			return false, err
		}
		d := quantize.DType(t.from.source.DType)
		lists[i] = make([]byte, int64(len(data))/int64(t.from.source.sizes().Scales)*4)
		if err := quantize.Cast(lists[i], quantize.F32, data, d); err != nil {
			return false, err
		}
	}
	for i := 0; i < len(lists[0]); i += 4 {
		scale := math.Float32frombits(binary.LittleEndian.Uint32(lists[0][i:]))
		if !kind.HoldsAffine(scale, math.Float32frombits(binary.LittleEndian.Uint32(lists[1][i:]))) {
			return false, nil
		}
	}
	return true, nil
}

// compose reads n elements of a quantized tensor as blocks with the same codes.
func (s *arrayStream) compose(t *storedTensor, begin, n int64) error {
	blocks, err := s.groups(t, begin, n)
	if err != nil {
		return err
	}
	block, size := s.kind.Block()
	s.ready = grown(&s.buf.narrow, n/int64(block)*int64(size))
	if err := s.kind.Compose(s.ready, t.Quant, blocks); err != nil {
		return fmt.Errorf("tensor %s, from element %d: %w", t.Name, begin, err)
	}
	return nil
}

// encode reads n elements and encodes them.
func (s *arrayStream) encode(t *storedTensor, begin, n int64) error {
	read := s.decode
	if t.Quant == 0 {
		read = s.addNumber // which is 0
	}
	if err := read(t, begin, n); err != nil {
		return err
	}
	values := make([]float32, n)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(s.ready[4*i:]))
	}
	block, size := s.kind.Block()
	s.ready = grown(&s.buf.narrow, n/int64(block)*int64(size))
	if err := s.kind.Encode(s.ready, values); err != nil {
		return fmt.Errorf("tensor %s, from element %d: %w; export it with --type BF16", t.Name, begin, err)
	}
	return nil
}
