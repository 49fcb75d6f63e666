package export

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/ggml"
	"github.com/ingotml/ingot/safetensors"
)

// storedTensor is a tensor of an image, with the arrays of its blob.
type storedTensor struct {
	source.Tensor
	parts map[string]safetensors.Tensor // by suffix of the name
	rule  string
}

func newStored(t source.Tensor) (*storedTensor, error) {
	s := &storedTensor{Tensor: t, parts: t.Header.Arrays, rule: t.Header.Rule()}
	if t.Quant == 0 {
		return s, nil
	}
	if err := t.Header.CheckArrays(t.Quant); err != nil {
		return nil, fmt.Errorf("tensor %s: blob %s: %w: %w", t.Name, t.File, source.ErrSource, err)
	}
	return s, nil
}

// format describes the tensor's type for messages.
func (s *storedTensor) format() string {
	switch {
	case s.Quant == 0:
		return string(s.DType)
	case s.Global != 0:
		return fmt.Sprintf("%s times %v", s.Quant, s.Global)
	}
	return fmt.Sprintf("%s of %s", s.Quant, s.DType)
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

	composed // blocks of a GGUF type with the same codes
	encoded  // elements as blocks of a GGUF type
)

// arrayReader reads an array of a shard from blobs.
type arrayReader struct {
	from   []table.WrittenPiece
	stored map[string]*storedTensor
	source *storedTensor // one of from; all have its type
	part   arrayPart
	to     safetensors.DType
	add    float32
	kind   ggml.Type // of composed and encoded
	// rows and columns of each matrix that is written transposed, as from has it; 0 = it is written as it is.
	rows, columns int64
}

// open returns a stream of the array's bytes. It opens one blob at a time.
func (r arrayReader) open(ctx context.Context) (io.ReadCloser, error) {
	s := &arrayStream{ctx: ctx, arrayReader: r}
	if r.rows == 0 {
		return s, nil
	}
	return &transposedStream{ReadCloser: s, rows: r.rows, columns: r.columns, width: int64(r.to.Bits() / 8)}, nil
}

// transposedStream reads the transposes of the matrices of a stream, one matrix at a time.
type transposedStream struct {
	io.ReadCloser
	rows, columns int64
	width         int64  // of an element, in bytes
	rest          []byte // of the current matrix
}

func (t *transposedStream) Read(p []byte) (int, error) {
	if len(t.rest) == 0 {
		matrix := make([]byte, t.rows*t.columns*t.width)
		if _, err := io.ReadFull(t.ReadCloser, matrix); err != nil {
			return 0, err
		}
		t.rest = transposed(matrix, t.rows, t.columns, t.width)
	}
	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// transposed returns the transpose of a matrix of rows x columns elements, of width bytes each.
func transposed(matrix []byte, rows, columns, width int64) []byte {
	out := make([]byte, 0, len(matrix))
	for c := range columns {
		for r := range rows {
			out = append(out, matrix[(r*columns+c)*width:][:width]...)
		}
	}
	return out
}

// arrayStream reads pieces in batches of at most batchSize elements.
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

// batchSize is a multiple of every group size.
const batchSize = 1 << 17

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
	n := min(p.Count-s.done, batchSize)
	if n == 0 {
		s.piece, s.done = s.piece+1, 0
		return nil
	}
	t := s.stored[p.Tensor]
	if s.name != p.Tensor {
		if err := s.Close(); err != nil {
			return err
		}
		f, err := safetensors.Open(t.Path)
		if err != nil {
			s.file = nil
			return source.InTensor(t.Name, err)
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
		s.ready, err = s.bytes(&s.buf.codes, t, "", begin, n, sizes.Packed, t.Quant.Group())
	case scalesPart:
		s.ready, err = s.bytes(&s.buf.scales, t, blob.ScaleSuffix, begin, n, sizes.Scales, t.Quant.Group())
	case biasesPart:
		s.ready, err = s.bytes(&s.buf.biases, t, blob.BiasSuffix, begin, n, sizes.Biases, t.Quant.Group())
	case decoded:
		err = s.decode(t, begin, n)
	case added:
		err = s.addNumber(t, begin, n)
	case composed:
		err = s.compose(t, begin, n)
	case encoded:
		err = s.encode(t, begin, n)
	}
	return err
}

// sizes returns the bytes of an element of a plain tensor, or of a group of a quantized one.
func (s *storedTensor) sizes() quantize.Sizes {
	if s.Quant == 0 {
		return quantize.Sizes{Source: s.DType.Bits() / 8}
	}
	return s.Quant.GroupSizes(quantize.DType(s.DType))
}

// bytes reads the bytes of one array that belong to a range of elements.
func (s *arrayStream) bytes(
	buf *[]byte, t *storedTensor, suffix string, begin, n int64, size, group int,
) ([]byte, error) {
	b := grown(buf, n/int64(group)*int64(size))
	part := t.parts[suffix]
	if err := source.ReadFull(s.file.Reader(part), b, begin/int64(group)*int64(size)); err != nil {
		return nil, source.InTensor(t.Name, err)
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
	blocks, err := s.groups(t, begin, n)
	if err != nil {
		return err
	}
	wide := grown(&s.buf.wide, 4*n)
	if err := t.Quant.Decode(wide, quantize.F32, blocks, quantize.F32); err != nil {
		return source.InTensor(t.Name, err)
	}
	if t.Global != 0 {
		eachF32(wide, func(v float32) float32 { return v * t.Global })
	}
	return s.round(t, wide, begin)
}

// groups reads the groups of a range of elements, with the scales and biases of affine ones in float32.
func (s *arrayStream) groups(t *storedTensor, begin, n int64) (blocks quantize.Blocks, err error) {
	sizes, group := t.sizes(), t.Quant.Group()
	if blocks.Packed, err = s.bytes(&s.buf.codes, t, "", begin, n, sizes.Packed, group); err != nil {
		return blocks, err
	}
	if blocks.Scales, err = s.bytes(&s.buf.scales, t, blob.ScaleSuffix, begin, n, sizes.Scales, group); err != nil ||
		t.Quant.Mode() != "affine" {
		return blocks, err
	}
	if blocks.Biases, err = s.bytes(&s.buf.biases, t, blob.BiasSuffix, begin, n, sizes.Biases, group); err != nil {
		return blocks, err
	}
	for _, b := range []*[]byte{&blocks.Scales, &blocks.Biases} {
		wide := make([]byte, len(*b)/sizes.Scales*4)
		if err := quantize.Cast(wide, quantize.F32, *b, quantize.DType(t.DType)); err != nil {
			return blocks, err
		}
		*b = wide
	}
	return blocks, nil
}

// addNumber adds a number to elements, in float32.
func (s *arrayStream) addNumber(t *storedTensor, begin, n int64) error {
	data, err := s.bytes(&s.buf.codes, t, "", begin, n, t.sizes().Source, 1)
	if err != nil {
		return err
	}
	wide := grown(&s.buf.wide, 4*n)
	if err := quantize.Cast(wide, quantize.F32, data, quantize.DType(t.DType)); err != nil {
		return source.InTensor(t.Name, err)
	}
	if s.add != 0 { // which would change -0
		eachF32(wide, func(v float32) float32 { return v + s.add })
	}
	return s.round(t, wide, begin)
}

// round converts float32 elements to the array's type.
func (s *arrayStream) round(t *storedTensor, wide []byte, begin int64) error {
	if s.to == safetensors.F32 {
		s.ready = wide
		return nil
	}
	narrow := grown(&s.buf.narrow, int64(len(wide)/2))
	cast := quantize.CastTo(quantize.DType(s.to))
	if err := cast.Encode(quantize.Blocks{Packed: narrow}, wide, quantize.F32); err != nil {
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
		from: []table.WrittenPiece{{Tensor: t.Name, Count: n}}, stored: map[string]*storedTensor{t.Name: t}, source: t,
		part: added, to: safetensors.F32, add: float32(add),
	}
	stream, err := r.open(context.Background())
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	return io.ReadAll(stream)
}
