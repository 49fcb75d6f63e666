package embed

import (
	"fmt"
	"math"
	"slices"

	"github.com/ingotml/ingot/arch/pooling"
	"github.com/ingotml/ingot/runtime"
)

// Vector computes a text's embedding from the hidden states of its tokens, in order. It sums in float64.
type Vector struct {
	modes    []pooling.Mode
	rows     int
	first    []float32
	last     []float32
	max      []float32
	sum      []float64
	weighted []float64
}

func (p *Vector) has(m pooling.Mode) bool { return slices.Contains(p.modes, m) }

// NeedsAllRows reports whether the embedding depends on other tokens than the last one. p may be nil.
func (p *Vector) NeedsAllRows() bool {
	return p != nil && slices.ContainsFunc(p.modes, func(m pooling.Mode) bool { return m != pooling.Last })
}

// Reset discards all rows. p may be nil.
func (p *Vector) Reset() {
	if p != nil {
		*p = Vector{modes: p.modes}
	}
}

// Add adds the next rows [n, width]. If NeedsAllRows is false, rows before the last one may be left out.
func (p *Vector) Add(rows []float32, width int) {
	for row := range slices.Chunk(rows, width) {
		p.rows++
		if p.rows == 1 && p.has(pooling.First) {
			p.first = slices.Clone(row)
		}
		if p.has(pooling.Max) {
			if p.max == nil {
				p.max = slices.Clone(row)
			}
			for i, v := range row {
				p.max[i] = max(p.max[i], v)
			}
		}
		if p.has(pooling.Mean) || p.has(pooling.MeanSqrt) {
			p.sum = addRow(p.sum, row, 1)
		}
		if p.has(pooling.Weighted) {
			p.weighted = addRow(p.weighted, row, float64(p.rows))
		}
	}
	p.last = slices.Clone(rows[len(rows)-width:])
}

func addRow(sum []float64, row []float32, weight float64) []float64 {
	if sum == nil {
		sum = make([]float64, len(row))
	}
	for i, v := range row {
		sum[i] += weight * float64(v)
	}
	return sum
}

// Elements returns the embedding: the first elements of the concatenated modes, normalized. 0 dimensions means all
// elements.
func (p *Vector) Elements(dimensions int) ([]float32, error) {
	var out []float64
	plain := func(row []float32) {
		for _, v := range row {
			out = append(out, float64(v))
		}
	}
	scaled := func(row []float64, by float64) {
		for _, v := range row {
			out = append(out, v*by)
		}
	}
	n := float64(p.rows)
	for _, m := range p.modes {
		switch m {
		case pooling.First:
			plain(p.first)
		case pooling.Max:
			plain(p.max)
		case pooling.Mean:
			scaled(p.sum, 1/n)
		case pooling.MeanSqrt:
			scaled(p.sum, 1/math.Sqrt(n))
		case pooling.Weighted:
			scaled(p.weighted, 2/(n*(n+1)))
		case pooling.Last:
			plain(p.last)
		}
	}
	if dimensions > 0 {
		out = out[:dimensions]
	}
	var squares float64
	for _, v := range out {
		squares += v * v
	}
	if math.IsNaN(squares) || math.IsInf(squares, 0) {
		return nil, fmt.Errorf("the hidden states are not finite: %w", runtime.ErrImage)
	}
	by := 1 / max(math.Sqrt(squares), 1e-12)
	vector := make([]float32, len(out))
	for i, v := range out {
		vector[i] = float32(v * by)
	}
	return vector, nil
}
