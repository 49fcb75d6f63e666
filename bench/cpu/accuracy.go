package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// accuracyJSON has relative errors (Euclidean norm) of y = x W^T with packed W, bf16 x and y, against float64.
type accuracyJSON struct {
	Type         string  `json:"type"`
	Quantization float64 `json:"quantization"` // error of the packed weights against their source
	// error of rounding the float64 result to bf16: the lower bound for any kernel
	Rounding     float64 `json:"rounding"`
	Exact        float64 `json:"exact"`
	Fast         float64 `json:"fast"`
	ExactOutlier float64 `json:"exact_outlier"` // one element of x in 256 is scaled by 50, as in real models
	FastOutlier  float64 `json:"fast_outlier"`
}

const (
	accuracyColumns = 2048
	accuracyOutputs = 512
	outlierEvery    = 256
	outlierTimes    = 50
)

// accuracy measures products with one row and with many, in every type, and reports the larger error.
func (b *bench) accuracy(ctx context.Context, _ command) (any, error) {
	var all []accuracyJSON
	for _, t := range quantize.Types() {
		if t.IsCast() {
			continue
		}
		a, err := b.accuracyOf(ctx, t)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t, err)
		}
		all = append(all, a)
	}
	return all, nil
}

func (b *bench) accuracyOf(ctx context.Context, t quantize.Type) (accuracyJSON, error) {
	r := rand.New(rand.NewPCG(2, 3))
	source := normal(r, accuracyOutputs*accuracyColumns, 0.02)
	packed, weights, err := pack(t, source)
	if err != nil {
		return accuracyJSON{}, err
	}
	a := accuracyJSON{Type: t.String(), Quantization: distance(weights, widen(source))}
	for _, rows := range []int{1, 64} {
		for _, outliers := range []bool{false, true} {
			x := normal(r, rows*accuracyColumns, 1)
			if outliers {
				for i := outlierEvery / 3; i < len(x); i += outlierEvery {
					x[i] = bfloat(outlierTimes * fromBFloat(x[i]))
				}
			}
			want := product(widen(x), weights)
			exact, fast := &a.Exact, &a.Fast
			if outliers {
				exact, fast = &a.ExactOutlier, &a.FastOutlier
			}
			for _, m := range []struct {
				fast  bool
				worst *float64
			}{{false, exact}, {true, fast}} {
				got, err := b.multiply(ctx, t, packed, x, m.fast)
				if err != nil {
					return a, err
				}
				*m.worst = max(*m.worst, distance(got, want))
			}
			rounded := make([]float64, len(want))
			for i, v := range want {
				rounded[i] = float64(fromBFloat(bfloat(float32(v))))
			}
			a.Rounding = max(a.Rounding, distance(rounded, want))
		}
	}
	return a, nil
}

// pack quantizes bf16 weights and also returns the dequantized values.
func pack(t quantize.Type, source []uint16) (quantize.Blocks, []float64, error) {
	n := len(source) / t.Group()
	size := t.GroupSizes(quantize.BF16)
	blocks := quantize.Blocks{Packed: make([]byte, n*size.Packed), Scales: make([]byte, n*size.Scales),
		Biases: make([]byte, n*size.Biases)}
	if err := t.Encode(blocks, little(source), quantize.BF16); err != nil {
		return blocks, nil, err
	}
	decoded := make([]byte, 4*len(source))
	// The scales are float32: with bf16 scales the engine rounds each dequantized weight to bf16, which a product need not
	// do.
	wide := quantize.Blocks{Packed: blocks.Packed, Scales: blocks.Scales, Biases: blocks.Biases}
	if len(blocks.Biases) > 0 {
		wide.Scales, wide.Biases = widened(blocks.Scales), widened(blocks.Biases)
	}
	if err := t.Decode(decoded, quantize.F32, wide, quantize.F32); err != nil {
		return blocks, nil, err
	}
	weights := make([]float64, len(source))
	for i := range weights {
		weights[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(decoded[4*i:])))
	}
	return blocks, weights, nil
}

// widened converts bf16 to float32, both little-endian.
func widened(b []byte) []byte {
	wide := make([]byte, 0, 2*len(b))
	for ; len(b) > 0; b = b[2:] {
		wide = append(wide, 0, 0, b[0], b[1])
	}
	return wide
}

// multiply runs the operation of a linear layer.
func (b *bench) multiply(ctx context.Context, t quantize.Type, w quantize.Blocks, x []uint16, fast bool) (y []float64,
	err error) {
	parts, err := t.Parts(quantize.BF16, []int64{accuracyOutputs, accuracyColumns})
	if err != nil {
		return nil, err
	}
	err = b.thread.Do(ctx, func() error {
		cpu := b.cpu
		cpu.Fast = fast
		if err := b.thread.SetCPU(cpu); err != nil {
			return err
		}
		array := func(data []byte, p quantize.Part) *mlx.Array {
			if len(data) == 0 {
				return nil
			}
			return mlx.FromBytes(b.thread, data, dtypes[safetensors.DType(p.DType)], int(p.Shape[0]), int(p.Shape[1]))
		}
		rows := mlx.FromBytes(b.thread, little(x), mlx.BFloat16, len(x)/accuracyColumns, accuracyColumns)
		out := mlx.QuantizedMatMul(rows, array(w.Packed, parts.Packed), array(w.Scales, parts.Scales),
			array(w.Biases, parts.Biases),
			true, t.Group(), t.Bits(), modes[t.Mode()])
		for _, v := range mlx.AsType(out, mlx.Float32).Float32s() {
			y = append(y, float64(v))
		}
		return nil
	})
	return y, err
}

// product returns x W^T.
func product(x, w []float64) []float64 {
	y := make([]float64, 0, len(x)/accuracyColumns*accuracyOutputs)
	for at := 0; at < len(x); at += accuracyColumns {
		for of := 0; of < len(w); of += accuracyColumns {
			sum := 0.0
			for k := range accuracyColumns {
				sum += x[at+k] * w[of+k]
			}
			y = append(y, sum)
		}
	}
	return y
}

// distance returns the relative error of a.
func distance(a, want []float64) float64 {
	var difference, norm float64
	for i, v := range want {
		difference += (a[i] - v) * (a[i] - v)
		norm += v * v
	}
	return math.Sqrt(difference / norm)
}

func normal(r *rand.Rand, n int, deviation float64) []uint16 {
	v := make([]uint16, n)
	for i := range v {
		v[i] = bfloat(float32(r.NormFloat64() * deviation))
	}
	return v
}

// bfloat rounds a finite number to bf16, half to even.
func bfloat(v float32) uint16 {
	bits := math.Float32bits(v)
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

func fromBFloat(bf16 uint16) float32 { return math.Float32frombits(uint32(bf16) << 16) }

func widen(bf16 []uint16) []float64 {
	v := make([]float64, len(bf16))
	for i, b := range bf16 {
		v[i] = float64(fromBFloat(b))
	}
	return v
}

func little(v []uint16) []byte {
	b := make([]byte, 0, 2*len(v))
	for _, u := range v {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return b
}
