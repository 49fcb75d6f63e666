package speed

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/safetensors"
	"github.com/x448/float16"
)

// Tensor is a tensor as it will be stored.
type Tensor struct {
	Name   string
	Type   quantize.Type // 0: not quantized
	Arrays []blob.Array
}

// Bytes returns the size of the arrays.
func (t Tensor) Bytes() (n int64) {
	for _, a := range t.Arrays {
		n += a.Bytes
	}
	return n
}

// ErrType reports a tensor that cannot be made up.
var ErrType = errors.New("this type is unknown to the engine")

// window is how much of each kind of contents is different memory: more than the caches of processors hold.
const window = 192 << 20

// fill is a kind of contents of arrays.
type fill struct {
	values values
	bits   int // of the codes that biases center
}

type values int

const (
	codes       values = iota // random bits
	exponents                 // scales of mxfp4 and mxfp8: powers of two
	smallFloats               // scales of nvfp4
	integers                  // zeros: indices
	scales16                  // of affine types
	scalesHalf
	scales32
	biases16 // of affine types
	biasesHalf
	biases32
	plain16 // bfloat16
	plainHalf
	plain32
	plain64
)

// fillOf returns the contents of an array of a tensor of type t.
func fillOf(t quantize.Type, suffix string, d mlx.DType) fill {
	floats := map[mlx.DType][3]values{
		mlx.BFloat16: {plain16, scales16, biases16}, mlx.Float16: {plainHalf, scalesHalf, biasesHalf},
		mlx.Float32: {plain32, scales32, biases32}, mlx.Float64: {plain64, plain64, plain64},
	}
	switch {
	case d.Float() && t == 0:
		return fill{values: floats[d][0]}
	case d.Float() && suffix == blob.BiasSuffix:
		return fill{values: floats[d][2], bits: t.Bits()}
	case d.Float():
		return fill{values: floats[d][1]}
	case t != 0 && suffix == "":
		return fill{values: codes}
	case t != 0 && t.Mode() == "nvfp4":
		return fill{values: smallFloats}
	case t != 0:
		return fill{values: exponents}
	}
	return fill{values: integers}
}

// scale and weight are powers of two, at which random scales and weights begin.
const scale, weight = 1.0 / (1 << 11), 1.0 / (1 << 6)

// bias makes the mean of weights zero: of random codes times scales whose mean is 1.5 times the constant. Otherwise
// each product would be the sum of its input times a constant, and routers would choose the same experts each time.
func (f fill) bias() float32 { return -1.5 * scale * float32(int(1)<<f.bits-1) / 2 }

// pattern returns a function that writes one element.
func (f fill) pattern(r *rand.Rand) (width int, put func(to []byte)) {
	bits := func(width, mantissa int, base uint64, signed bool) (int, func(to []byte)) {
		return width, func(to []byte) {
			v := base | r.Uint64()&(1<<mantissa-1)
			if signed {
				v |= r.Uint64() & 1 << (8*width - 1)
			}
			for i := range width {
				to[i] = byte(v >> (8 * i))
			}
		}
	}
	half := func(x float32) uint64 { return uint64(float16.Fromfloat32(x)) }
	wide := func(x float32) uint64 { return uint64(math.Float32bits(x)) }
	switch f.values {
	case codes:
		return bits(8, 63, 0, true)
	case exponents:
		return bits(1, 1, 0x76, false)
	case smallFloats:
		return bits(1, 1, 0x20, false)
	case scales16:
		return bits(2, 7, wide(scale)>>16, false)
	case scalesHalf:
		return bits(2, 10, half(scale), false)
	case scales32:
		return bits(4, 23, wide(scale), false)
	case biases16:
		return bits(2, 0, wide(f.bias())>>16, false)
	case biasesHalf:
		return bits(2, 0, half(f.bias()), false)
	case biases32:
		return bits(4, 0, wide(f.bias()), false)
	case plain16:
		return bits(2, 7, wide(weight)>>16, true)
	case plainHalf:
		return bits(2, 10, half(weight), true)
	case plain32:
		return bits(4, 23, wide(weight), true)
	case plain64:
		return bits(8, 52, math.Float64bits(weight), true)
	}
	return bits(8, 0, 0, false)
}

// memory makes arrays over ranges of one file.
type memory struct {
	region   *mlx.Region
	sections map[fill]*section
}

// section is the range of the file with one kind of contents. Arrays take its bytes in turn.
type section struct{ begin, size, next int64 }

// align is that of arrays, and of the pages of the file.
const align = 1 << 14

func aligned(n int64) int64 { return (n + align - 1) / align * align }

// each calls fn with all arrays of tensors.
func each(tensors []Tensor, fn func(t Tensor, a blob.Array, suffix string, d mlx.DType)) error {
	for _, t := range tensors {
		for _, a := range t.Arrays {
			d, ok := load.DType(safetensors.DType(a.DType))
			if !ok {
				return fmt.Errorf("tensor %s: %s: %w", t.Name, a.DType, ErrType)
			}
			fn(t, a, a.Name[len(t.Name):], d)
		}
	}
	return nil
}

// newMemory makes memory for the largest of several sets of tensors. Call it inside Do.
func newMemory(t *mlx.Thread, sets ...[]Tensor) (*memory, error) {
	m := &memory{sections: map[fill]*section{}}
	for _, tensors := range sets {
		total, largest := map[fill]int64{}, map[fill]int64{}
		if err := each(tensors, func(t Tensor, a blob.Array, suffix string, d mlx.DType) {
			f := fillOf(t.Type, suffix, d)
			total[f] += aligned(a.Bytes)
			largest[f] = max(largest[f], aligned(a.Bytes))
		}); err != nil {
			return nil, err
		}
		for f, n := range total {
			if m.sections[f] == nil {
				m.sections[f] = &section{}
			}
			m.sections[f].size = max(m.sections[f].size, largest[f], min(n, window))
		}
	}
	size := int64(0)
	for _, s := range m.sections {
		s.begin = size
		size += s.size
	}
	path, done, err := tempFile()
	if err != nil {
		return nil, err
	}
	defer done()
	if err := m.write(path, size); err != nil {
		return nil, fmt.Errorf("make up weights: %w", err)
	}
	m.region = mlx.OpenRegion(t, path, align, size) // not at 0, where a CPU would copy it
	return m, nil
}

// pieceBytes is the size of the contents that repeat in a section.
const pieceBytes = 1 << 20

// write writes the contents: of a section larger than the window only its beginning. The rest is zeros, which take no
// memory until they are read.
func (m *memory) write(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(align + size); err != nil {
		return err
	}
	piece := make([]byte, pieceBytes)
	for of, s := range m.sections {
		width, put := of.pattern(rand.New(rand.NewPCG(1, uint64(of.values))))
		for i := 0; i < len(piece); i += width {
			put(piece[i:])
		}
		for at := int64(0); at < min(s.size, window); at += pieceBytes {
			if _, err := f.WriteAt(piece[:min(pieceBytes, s.size-at)], align+s.begin+at); err != nil {
				return err
			}
		}
	}
	return f.Close()
}

// close lets go of the memory, which lives as long as arrays over it. Call it inside Do.
func (m *memory) close() { m.region.Close() }

// weights makes up tensors. The caller frees the weights.
func (m *memory) weights(of arch.Model, tensors []Tensor) (*nn.Weights, error) {
	for _, s := range m.sections {
		s.next = 0
	}
	made := map[string]*nn.Tensor{}
	arrays := map[string]map[string]*mlx.Array{}
	err := each(tensors, func(t Tensor, a blob.Array, suffix string, d mlx.DType) {
		s := m.sections[fillOf(t.Type, suffix, d)]
		n := aligned(a.Bytes)
		if s.next+n > s.size {
			s.next = 0
		}
		shape := make([]int, len(a.Shape))
		for i, n := range a.Shape {
			shape[i] = int(n)
		}
		if arrays[t.Name] == nil {
			arrays[t.Name] = map[string]*mlx.Array{}
		}
		arrays[t.Name][suffix] = m.region.Array(s.begin+s.next, d, shape...)
		s.next += n
	})
	if err != nil {
		return nil, err
	}
	for _, t := range tensors {
		made[t.Name] = load.TensorOf(arrays[t.Name], t.Type)
	}
	return load.NewWeights(made, of), nil
}
