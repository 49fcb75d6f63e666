package shard

import (
	"fmt"
	"math"
	"slices"

	"github.com/ingotml/ingot/arch"
)

// Stages are the numbers of layers that the ranks of a pipeline have, by rank: each computes its layers for the rows
// that the one before sends. Rank 0 also has everything that belongs to no layer. Nil means that there is no pipeline:
// ranks have parts of tensors.
type Stages []int

// Range returns the layers of a rank.
func (s Stages) Range(rank int) (first, end int) {
	for _, n := range s[:rank] {
		first += n
	}
	return first, first + s[rank]
}

// Layers returns the number of all layers.
func (s Stages) Layers() (n int) {
	for _, layers := range s {
		n += layers
	}
	return n
}

// Check returns an error if ranks cannot have these layers of a model.
func (s Stages) Check(m arch.Model, size int) error {
	f := m.Facts()
	layers := int(f.Layers)
	if len(s) != size || s.Layers() != layers {
		return fmt.Errorf("%s has %d layers, which %d ranks cannot have as %v: %w", f.ModelType, f.Layers, size, s, ErrRanks)
	}
	at := 0
	for _, n := range s {
		if n < 1 {
			return fmt.Errorf("a rank without layers among %v: %w", s, ErrRanks)
		}
		if at > 0 && !canCut(m, layers, at) {
			return fmt.Errorf("layer %d of %s reads what an earlier layer stores, and must be on its rank: %w", at,
				f.ModelType, ErrRanks)
		}
		at += n
	}
	return nil
}

// canCut reports whether a rank can begin with one of the layers of a model.
func canCut(m arch.Model, layers, layer int) bool {
	for i := layer; i < layers; i++ {
		if arch.Link(m, i) < layer {
			return false
		}
	}
	return true
}

// Divide returns what a rank has of the tensors of a model: [Parts], or with stages its layers. The tensors of other
// layers are absent.
func Divide(m arch.Model, s Stages, rank, size int) (map[string]Part, error) {
	t := m.Table()
	if s == nil {
		return Parts(t, rank, size)
	}
	if rank < 0 || rank >= size {
		return nil, fmt.Errorf("rank %d of %d: %w", rank, size, ErrRanks)
	}
	if err := s.Check(m, size); err != nil {
		return nil, err
	}
	parts := map[string]Part{}
	for _, spec := range t.Specs {
		if !s.Has(arch.Uses(m, t, s.Layers(), spec.Name), rank) {
			parts[spec.Name] = Part{Absent: true}
		}
	}
	return parts, nil
}

// Absent returns the names of the absent tensors.
func Absent(parts map[string]Part) map[string]bool {
	all := map[string]bool{}
	for name, p := range parts {
		if p.Absent {
			all[name] = true
		}
	}
	return all
}

// Has reports whether a rank has a tensor that these layers use; nil: it belongs to no layer.
func (s Stages) Has(layers []int, rank int) bool {
	if layers == nil {
		return rank == 0
	}
	first, end := s.Range(rank)
	for _, i := range layers {
		if i >= first && i < end {
			return true
		}
	}
	return false
}

// StateShares returns the part of a sequence's state that each rank of a pipeline has, at the length at which the part
// is largest. Without stages it returns nil, since each rank has about the same.
func (s Stages) StateShares(m arch.Model) []float64 {
	if s == nil {
		return nil
	}
	all := m.State()
	each := len(all) / max(s.Layers(), 1) // states of a layer
	fractions := make([]float64, len(s))
	for _, tokens := range []int64{1, 1024, max(m.Facts().Context, 4096)} {
		var total int64
		own := make([]int64, len(s))
		for rank := range s {
			first, end := s.Range(rank)
			for _, l := range all[first*each : end*each] {
				own[rank] += l.Elements(tokens) + l.Fixed // recurrent state is float32
			}
			total += own[rank]
		}
		for rank, n := range own {
			fractions[rank] = max(fractions[rank], float64(n)/float64(max(total, 1)))
		}
	}
	return fractions
}

// Spread divides the layers of a model over ranks so that the largest quotient of a rank's cost and its weight is
// least, and the quotients are otherwise as equal as possible. cost has a number for each layer. ends is the cost of
// everything else that rank 0 has.
func Spread(m arch.Model, cost []float64, ends float64, weights []float64) (Stages, error) {
	layers, size := len(cost), len(weights)
	d := spreading{cuts: make([]bool, layers+1), sums: make([]float64, layers+1), ends: ends, weights: weights}
	for i := range d.cuts {
		d.cuts[i] = i == layers || i > 0 && canCut(m, layers, i)
	}
	for i, c := range cost {
		d.sums[i+1] = d.sums[i] + c
	}
	largest, _ := d.best(math.Inf(1), math.Max)
	if math.IsInf(largest, 1) {
		return nil, fmt.Errorf("%s has %d layers, which cannot be divided over %d ranks: %w", m.Facts().ModelType, layers,
			size, ErrRanks)
	}
	// Rank 0 often has the largest quotient whatever the others have, so those are divided evenly.
	_, s := d.best(largest, func(before, quotient float64) float64 { return before + quotient*quotient })
	return s, nil
}

// Even divides the layers of a model over ranks as evenly as possible.
func Even(m arch.Model, ranks int) (Stages, error) {
	ones := func(n int) []float64 { return slices.Repeat([]float64{1}, n) }
	return Spread(m, ones(int(m.Facts().Layers)), 0, ones(ranks))
}

// spreading is the input of Spread: layers before which a rank may begin, and the cost of all layers before each.
type spreading struct {
	cuts    []bool
	sums    []float64
	ends    float64
	weights []float64
}

// best returns the stages with the least total, which add makes of the ranks' quotients, and that total. No quotient is
// larger than the limit. The total is infinite if there are no such stages.
func (d spreading) best(limit float64, add func(before, quotient float64) float64) (float64, Stages) {
	layers, size := len(d.sums)-1, len(d.weights)
	if size == 0 {
		return math.Inf(1), nil
	}
	// total[r][i] is the least of ranks 0 to r with the layers before i, and from[r][i] where rank r then begins.
	total, from := make([][]float64, size), make([][]int, size)
	for r := range size {
		total[r], from[r] = make([]float64, layers+1), make([]int, layers+1)
		for i := range total[r] {
			total[r][i] = math.Inf(1)
			if !d.cuts[i] {
				continue
			}
			for j := range i {
				before, own := 0.0, d.sums[i]-d.sums[j]
				if r > 0 {
					before = total[r-1][j]
				} else if own += d.ends; j > 0 {
					break
				}
				if q := own / d.weights[r]; q <= limit && add(before, q) < total[r][i] {
					total[r][i], from[r][i] = add(before, q), j
				}
			}
		}
	}
	s, at := make(Stages, size), layers
	for r := size - 1; r >= 0; r-- {
		s[r] = at - from[r][at]
		at = from[r][at]
	}
	return total[size-1][layers], s
}
