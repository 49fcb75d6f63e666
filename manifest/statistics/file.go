package statistics

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/safetensors"
)

// metaKey is the key of the description in the file's metadata.
const metaKey = "ingot.statistics"

// document is the description in the metadata.
type document struct {
	Version int `json:"version"`
	About
	// Layers names the tensors that read each input, by the prefix of the input's arrays.
	Layers map[string][]string `json:"layers"`
}

const version = 1

// The arrays of an input: PREFIX.rows, PREFIX.squares, PREFIX.moments.0 and so on.
const (
	rowsSuffix    = ".rows"
	squaresSuffix = ".squares"
	momentsSuffix = ".moments."
)

// array is an array of the file, and what it holds.
type array struct {
	safetensors.Tensor
	data func() ([]byte, error)
}

// Write writes the set's file.
func (s *Set) Write(w io.Writer) error {
	doc := document{Version: version, About: s.About, Layers: map[string][]string{}}
	first := map[*Layer]string{}
	for _, name := range s.Tensors() {
		l := s.layers[name]
		if first[l] == "" {
			first[l] = name
		}
		doc.Layers[first[l]] = append(doc.Layers[first[l]], name)
	}
	var arrays []array
	for _, prefix := range slices.Sorted(maps.Keys(doc.Layers)) {
		arrays = append(arrays, s.layers[prefix].arrays(prefix, s.Block)...)
	}
	slices.SortStableFunc(arrays, func(a, b array) int { return b.DType.Bits() - a.DType.Bits() }) // aligned
	text, err := manifest.Marshal(doc)
	if err != nil {
		return err
	}
	tensors := make([]safetensors.Tensor, len(arrays))
	for i, a := range arrays {
		tensors[i] = a.Tensor
	}
	header, _, err := safetensors.EncodeHeader(tensors, map[string]string{metaKey: string(text)})
	if err != nil {
		return err
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	for _, a := range arrays {
		data, err := a.data()
		if err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	return nil
}

func (l *Layer) arrays(prefix string, block int) []array {
	experts, width := int64(len(l.Rows)), int64(l.Width)
	entry := func(name string, d safetensors.DType, data func() ([]byte, error), shape ...int64) array {
		return array{safetensors.Tensor{Name: prefix + name, DType: d, Shape: shape}, data}
	}
	list := []array{
		entry(rowsSuffix, safetensors.I64, func() ([]byte, error) { return encode(l.Rows), nil }, experts),
		entry(squaresSuffix, safetensors.F32, func() ([]byte, error) { return encode(l.Squares), nil }, experts, width),
	}
	if l.Moments == nil {
		return list
	}
	for i, n := range Blocks(l.Width, block) {
		list = append(list, entry(momentsSuffix+strconv.Itoa(i), safetensors.F32, func() ([]byte, error) {
			m, err := l.Moments(i)
			return encode(m), err
		}, int64(n), int64(n)))
	}
	return list
}

func encode(list any) []byte {
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, list) // a buffer takes everything
	return b.Bytes()
}

// Parse reads a file of the given size. Second moments are read when they are asked for, so r must stay open.
func Parse(r io.ReaderAt, size int64) (*Set, error) {
	s, err := parse(r, size)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStatistics, err)
	}
	return s, nil
}

// file is a file being read.
type file struct {
	io.ReaderAt
	header *safetensors.Header
	arrays map[string]safetensors.Tensor
}

func parse(r io.ReaderAt, size int64) (*Set, error) {
	header, err := safetensors.ReadHeader(r, size)
	if err != nil {
		return nil, err
	}
	text, ok := header.Metadata[metaKey]
	if !ok {
		return nil, fmt.Errorf("it has no statistics: `ingot calibrate` makes such files")
	}
	var doc document
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		return nil, err
	}
	if doc.Version != version {
		return nil, fmt.Errorf("version %d is not supported; calibrate again", doc.Version)
	}
	if doc.Block < 0 || doc.Block > maxBlock {
		return nil, fmt.Errorf("blocks of %d columns", doc.Block)
	}
	f := file{r, header, map[string]safetensors.Tensor{}}
	for _, t := range header.Tensors {
		f.arrays[t.Name] = t
	}
	s := New(doc.About)
	for _, prefix := range slices.Sorted(maps.Keys(doc.Layers)) {
		l, err := f.layer(prefix, doc.Block)
		if err != nil {
			return nil, err
		}
		s.Add(l, doc.Layers[prefix]...)
	}
	return s, nil
}

// maxBlock bounds the columns of a block.
const maxBlock = 1 << 15

func (f file) layer(prefix string, block int) (*Layer, error) {
	squares, ok := f.arrays[prefix+squaresSuffix]
	if !ok || squares.DType != safetensors.F32 || len(squares.Shape) != 2 || squares.Shape[1] > math.MaxInt32 {
		return nil, fmt.Errorf("%s%s: want F32 with two axes", prefix, squaresSuffix)
	}
	rows, ok := f.arrays[prefix+rowsSuffix]
	if !ok || rows.DType != safetensors.I64 || !slices.Equal(rows.Shape, squares.Shape[:1]) {
		return nil, fmt.Errorf("%s%s: want I64 %v", prefix, rowsSuffix, squares.Shape[:1])
	}
	l := &Layer{Width: int(squares.Shape[1]), Rows: make([]int64, rows.Shape[0])}
	l.Squares = make([]float32, squares.NumElements())
	if err := f.read(rows, l.Rows); err != nil {
		return nil, err
	}
	if err := f.read(squares, l.Squares); err != nil {
		return nil, err
	}
	if err := l.check(prefix); err != nil {
		return nil, err
	}
	if _, ok := f.arrays[prefix+momentsSuffix+"0"]; !ok || block == 0 {
		return l, nil
	}
	sizes := Blocks(l.Width, block)
	for i, n := range sizes {
		t := f.arrays[prefix+momentsSuffix+strconv.Itoa(i)]
		if t.DType != safetensors.F32 || !slices.Equal(t.Shape, []int64{int64(n), int64(n)}) {
			return nil, fmt.Errorf("%s%s%d: want F32 [%d %d]", prefix, momentsSuffix, i, n, n)
		}
	}
	l.Moments = func(i int) ([]float32, error) {
		m := make([]float32, sizes[i]*sizes[i])
		t := f.arrays[prefix+momentsSuffix+strconv.Itoa(i)]
		if err := f.read(t, m); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrStatistics, err)
		}
		for _, v := range m {
			if v != v || math.IsInf(float64(v), 0) {
				return nil, fmt.Errorf("%w: %s: an element is %v", ErrStatistics, t.Name, v)
			}
		}
		return m, nil
	}
	return l, nil
}

// read reads an array into a slice of its length.
func (f file) read(t safetensors.Tensor, into any) error {
	data := make([]byte, t.Size())
	if n, err := f.ReadAt(data, f.header.DataOffset+t.Begin); n < len(data) {
		return fmt.Errorf("%s: %w", t.Name, err)
	}
	return binary.Read(bytes.NewReader(data), binary.LittleEndian, into)
}
