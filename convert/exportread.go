package convert

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// storedTensor is a tensor of an image, with the header of its blob.
type storedTensor struct {
	weight
	parts map[string]safetensors.Tensor // by suffix of the name
	rule  string
}

func openStored(w weight) (*storedTensor, error) {
	s := &storedTensor{weight: w, parts: map[string]safetensors.Tensor{}}
	f, err := safetensors.Open(w.path)
	if err != nil {
		return nil, wrapTensor(w.Name, err)
	}
	defer f.Close()
	for _, suffix := range []string{"", scaleSuffix, biasSuffix} {
		if t, ok := f.Lookup(w.layer.Name + suffix); ok {
			s.parts[suffix] = t
		}
	}
	s.rule = f.Header().Metadata[metaRule]
	return s, s.check()
}

// check verifies the arrays against the type's shapes.
func (s *storedTensor) check() error {
	if s.quant == 0 {
		return nil
	}
	want, err := s.quant.Parts(quantize.DType(s.DType), s.Shape)
	if err != nil {
		return wrapTensor(s.Name, err)
	}
	for suffix, p := range map[string]quantize.Part{"": want.Packed, scaleSuffix: want.Scales, biasSuffix: want.Biases} {
		if p.DType == "" {
			continue
		}
		if got := s.parts[suffix]; string(got.DType) != string(p.DType) || got.Size() != p.Size() {
			return fmt.Errorf("tensor %s%s: blob %s: %w: it is %s %v, want %s %v", s.Name, suffix, s.layer.Digest, ErrSource,
				got.DType, got.Shape, p.DType, p.Shape)
		}
	}
	return nil
}

// format describes the tensor's type for messages.
func (s *storedTensor) format() string {
	switch {
	case s.quant == 0:
		return string(s.DType)
	case s.global != 0:
		return fmt.Sprintf("%s times %v", s.quant, s.global)
	}
	return fmt.Sprintf("%s of %s", s.quant, s.DType)
}

// arrayPart is the content of an array: an array of the tensor's blob, or one computed from it.
type arrayPart int

const (
	elementsPart arrayPart = iota // of a plain tensor
	codesPart
	scalesPart
	biasesPart
	decoded // dequantized elements
	added   // a plain tensor plus a number
)

// arrayReader reads an array of a shard from blobs.
type arrayReader struct {
	from   []arch.WrittenPiece
	stored map[string]*storedTensor
	source *storedTensor // one of from; all have its type
	part   arrayPart
	to     safetensors.DType
	add    float32
}

// open returns a stream of the array's bytes. It opens one blob at a time.
func (r arrayReader) open(ctx context.Context) (io.ReadCloser, error) {
	return &arrayStream{ctx: ctx, arrayReader: r}, nil
}

// arrayStream reads pieces in batches of at most exportBatch elements.
type arrayStream struct {
	arrayReader
	ctx   context.Context
	piece int   // index into from
	done  int64 // elements read of the piece
	name  string
	file  *safetensors.File
	ready []byte // bytes not yet returned by Read
	buf   struct{ codes, scales, biases, wide, narrow []byte }
}

// exportBatch is a multiple of every group size.
const exportBatch = 1 << 17

func (s *arrayStream) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

func (s *arrayStream) Read(p []byte) (int, error) {
	for len(s.ready) == 0 {
		if err := s.ctx.Err(); err != nil {
			return 0, err
		}
		if s.piece == len(s.from) {
			return 0, io.EOF
		}
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.ready)
	s.ready = s.ready[n:]
	return n, nil
}

// next reads a batch.
func (s *arrayStream) next() error {
	p := s.from[s.piece]
	n := min(p.Count-s.done, exportBatch)
	if n == 0 {
		s.piece, s.done = s.piece+1, 0
		return nil
	}
	t := s.stored[p.Tensor]
	if s.name != p.Tensor {
		if err := s.Close(); err != nil {
			return err
		}
		f, err := safetensors.Open(t.path)
		if err != nil {
			s.file = nil
			return wrapTensor(t.Name, err)
		}
		s.file, s.name = f, p.Tensor
	}
	err := s.read(t, p.Begin+s.done, n)
	s.done += n
	return err
}

// read reads n elements of a tensor into ready.
func (s *arrayStream) read(t *storedTensor, begin, n int64) (err error) {
	sizes := t.sizes()
	switch s.part {
	case elementsPart:
		s.ready, err = s.bytes(&s.buf.codes, t, "", begin, n, sizes.Source, 1)
	case codesPart:
		s.ready, err = s.bytes(&s.buf.codes, t, "", begin, n, sizes.Packed, t.quant.Group())
	case scalesPart:
		s.ready, err = s.bytes(&s.buf.scales, t, scaleSuffix, begin, n, sizes.Scales, t.quant.Group())
	case biasesPart:
		s.ready, err = s.bytes(&s.buf.biases, t, biasSuffix, begin, n, sizes.Biases, t.quant.Group())
	case decoded:
		err = s.decode(t, begin, n)
	case added:
		err = s.addNumber(t, begin, n)
	}
	return err
}

// sizes returns the bytes of an element of a plain tensor, or of a group of a quantized one.
func (s *storedTensor) sizes() quantize.Sizes {
	if s.quant == 0 {
		return quantize.Sizes{Source: s.DType.Bits() / 8}
	}
	return s.quant.GroupSizes(quantize.DType(s.DType))
}

// bytes reads the bytes of one array that belong to a range of elements.
func (s *arrayStream) bytes(
	buf *[]byte, t *storedTensor, suffix string, begin, n int64, size, group int,
) ([]byte, error) {
	b := grown(buf, n/int64(group)*int64(size))
	part := t.parts[suffix]
	if err := readFull(s.file.Reader(part), b, begin/int64(group)*int64(size)); err != nil {
		return nil, wrapTensor(t.Name, err)
	}
	return b, nil
}

func grown(buf *[]byte, n int64) []byte {
	if int64(cap(*buf)) < n {
		*buf = make([]byte, n)
	}
	return (*buf)[:n]
}

// decode dequantizes elements in float32, as MLX does, and rounds once to the array's type.
func (s *arrayStream) decode(t *storedTensor, begin, n int64) error {
	sizes, group := t.sizes(), t.quant.Group()
	codes, err := s.bytes(&s.buf.codes, t, "", begin, n, sizes.Packed, group)
	if err != nil {
		return err
	}
	blocks := quantize.Blocks{Packed: codes}
	if blocks.Scales, err = s.bytes(&s.buf.scales, t, scaleSuffix, begin, n, sizes.Scales, group); err != nil {
		return err
	}
	if t.quant.Mode() == "affine" {
		if blocks.Biases, err = s.bytes(&s.buf.biases, t, biasSuffix, begin, n, sizes.Biases, group); err != nil {
			return err
		}
		for _, b := range []*[]byte{&blocks.Scales, &blocks.Biases} {
			wide := make([]byte, len(*b)/sizes.Scales*4)
			if err := quantize.Cast(wide, quantize.F32, *b, quantize.DType(t.DType)); err != nil {
				return err
			}
			*b = wide
		}
	}
	wide := grown(&s.buf.wide, 4*n)
	if err := t.quant.Decode(wide, quantize.F32, blocks, quantize.F32); err != nil {
		return wrapTensor(t.Name, err)
	}
	if t.global != 0 {
		eachF32(wide, func(v float32) float32 { return v * t.global })
	}
	return s.round(t, wide, begin)
}

// addNumber adds a number to elements, in float32.
func (s *arrayStream) addNumber(t *storedTensor, begin, n int64) error {
	data, err := s.bytes(&s.buf.codes, t, "", begin, n, t.sizes().Source, 1)
	if err != nil {
		return err
	}
	wide := grown(&s.buf.wide, 4*n)
	if err := quantize.Cast(wide, quantize.F32, data, quantize.DType(t.DType)); err != nil {
		return wrapTensor(t.Name, err)
	}
	eachF32(wide, func(v float32) float32 { return v + s.add })
	return s.round(t, wide, begin)
}

// round converts float32 elements to the array's type.
func (s *arrayStream) round(t *storedTensor, wide []byte, begin int64) error {
	if s.to == safetensors.F32 {
		s.ready = wide
		return nil
	}
	narrow := grown(&s.buf.narrow, int64(len(wide)/2))
	if err := castTo[quantize.DType(s.to)].Encode(quantize.Blocks{Packed: narrow}, wide, quantize.F32); err != nil {
		return fmt.Errorf("tensor %s, from element %d: %w", t.Name, begin, err)
	}
	s.ready = narrow
	return nil
}

func eachF32(b []byte, f func(float32) float32) {
	for ; len(b) >= 4; b = b[4:] {
		v := math.Float32frombits(binary.LittleEndian.Uint32(b))
		binary.LittleEndian.PutUint32(b, math.Float32bits(f(v)))
	}
}

// readAdded reads a small tensor as float32, with add added to each element.
func readAdded(t *storedTensor, add float64) ([]byte, error) {
	n := safetensors.Tensor{Shape: t.Shape}.NumElements()
	r := arrayReader{
		from: []arch.WrittenPiece{{Tensor: t.Name, Count: n}}, stored: map[string]*storedTensor{t.Name: t}, source: t,
		part: added, to: safetensors.F32, add: float32(add),
	}
	stream, err := r.open(context.Background())
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	return io.ReadAll(stream)
}
