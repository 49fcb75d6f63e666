package gguf

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// Pair is a metadata key with its value.
type Pair struct {
	Key   string
	Value Value
}

// Numbers returns an array of int32.
func Numbers(list []int32) Value {
	v := Value{Kind: Int32, IsArray: true, Len: len(list)}
	for _, n := range list {
		v.data = binary.LittleEndian.AppendUint32(v.data, uint32(n))
	}
	return v
}

// Floats returns an array of float32.
func Floats(list []float32) Value {
	v := Value{Kind: Float32, IsArray: true, Len: len(list)}
	for _, x := range list {
		v.data = binary.LittleEndian.AppendUint32(v.data, math.Float32bits(x))
	}
	return v
}

// Flags returns an array of bools.
func Flags(list []bool) Value {
	v := Value{Kind: Bool, IsArray: true, Len: len(list)}
	for _, on := range list {
		v.data = append(v.data, 0)
		if on {
			v.data[len(v.data)-1] = 1
		}
	}
	return v
}

// Bytes returns an array of bytes.
func Bytes(list []byte) Value { return Value{Kind: Uint8, IsArray: true, Len: len(list), data: list} }

// Texts returns an array of strings.
func Texts(list []string) Value {
	return Value{Kind: String, IsArray: true, Len: len(list), strings: list}
}

// Text returns a string.
func Text(s string) Value { return Value{Kind: String, Len: 1, strings: []string{s}} }

// Number returns a uint32, the kind of most integers in GGUF files.
func Number(n uint32) Value {
	return Value{Kind: Uint32, Len: 1, data: binary.LittleEndian.AppendUint32(nil, n)}
}

// Real returns a float32.
func Real(x float32) Value {
	return Value{Kind: Float32, Len: 1, data: binary.LittleEndian.AppendUint32(nil, math.Float32bits(x))}
}

// Flag returns a bool.
func Flag(b bool) Value {
	v := Value{Kind: Bool, Len: 1, data: []byte{0}}
	if b {
		v.data[0] = 1
	}
	return v
}

// Write writes a file of version 3: the metadata and the tensors in the given order, and each tensor's data as data
// returns it. It sets neither a tensor's Offset nor its Size, and reads only Name, Type and Shape. The readers are not
// closed. After an error the output is invalid.
func Write(w io.Writer, metadata []Pair, tensors []Tensor, data func(i int) (io.Reader, error)) error {
	out := &writer{w: bufio.NewWriterSize(w, 1<<20)}
	out.text(magic)
	out.uint32(3)
	out.uint64(uint64(len(tensors)))
	out.uint64(uint64(len(metadata)))
	for _, p := range metadata {
		out.string(p.Key)
		out.value(p.Value)
	}
	sizes, err := out.tensors(tensors)
	if err != nil {
		return err
	}
	out.pad()
	for i, t := range tensors {
		r, err := data(i)
		if err != nil {
			return fmt.Errorf("tensor %s: %w", t.Name, err)
		}
		out.copy(t.Name, r, sizes[i])
		out.pad()
	}
	if out.err != nil {
		return out.err
	}
	return out.w.Flush()
}

// writer writes until the first error.
type writer struct {
	w   *bufio.Writer
	at  int64
	err error
}

func (o *writer) bytes(b []byte) {
	if o.err == nil {
		_, o.err = o.w.Write(b)
		o.at += int64(len(b))
	}
}

func (o *writer) text(s string)   { o.bytes([]byte(s)) }
func (o *writer) uint32(n uint32) { o.bytes(binary.LittleEndian.AppendUint32(nil, n)) }
func (o *writer) uint64(n uint64) { o.bytes(binary.LittleEndian.AppendUint64(nil, n)) }

func (o *writer) string(s string) {
	o.uint64(uint64(len(s)))
	o.text(s)
}

func (o *writer) value(v Value) {
	kind := v.Kind
	if v.IsArray {
		kind = Array
	}
	o.uint32(uint32(kind))
	o.elements(v)
}

func (o *writer) elements(v Value) {
	if v.IsArray {
		o.uint32(uint32(v.Kind))
		o.uint64(uint64(v.Len))
	}
	o.bytes(v.data)
	for _, s := range v.strings {
		o.string(s)
	}
	for _, a := range v.arrays {
		o.elements(a)
	}
}

// tensors writes the descriptions and returns the size of each tensor's data.
func (o *writer) tensors(tensors []Tensor) ([]int64, error) {
	sizes := make([]int64, len(tensors))
	var offset int64
	for i, t := range tensors {
		block, size := t.Type.Block()
		elements := int64(1)
		for _, d := range t.Shape {
			elements *= d
		}
		if block == 0 || len(t.Shape) > maxDims || len(t.Shape) > 0 && t.Shape[len(t.Shape)-1]%int64(block) != 0 {
			return nil, fmt.Errorf("%w: tensor %s of type %v cannot have shape %v", ErrFormat, t.Name, t.Type, t.Shape)
		}
		sizes[i] = elements / int64(block) * int64(size)
		o.string(t.Name)
		o.uint32(uint32(len(t.Shape)))
		for d := len(t.Shape) - 1; d >= 0; d-- {
			o.uint64(uint64(t.Shape[d]))
		}
		o.uint32(uint32(t.Type))
		o.uint64(uint64(offset))
		offset += (sizes[i] + defaultAlignment - 1) / defaultAlignment * defaultAlignment
	}
	return sizes, o.err
}

func (o *writer) pad() {
	if n := o.at % defaultAlignment; n > 0 {
		o.bytes(make([]byte, defaultAlignment-n))
	}
}

func (o *writer) copy(name string, r io.Reader, want int64) {
	if o.err != nil {
		return
	}
	n, err := io.Copy(o.w, io.LimitReader(r, want+1))
	o.at += n
	switch {
	case err != nil:
		o.err = fmt.Errorf("tensor %s: %w", name, err)
	case n != want:
		o.err = fmt.Errorf("%w: tensor %s has %d bytes of data, want %d", ErrFormat, name, n, want)
	}
}
