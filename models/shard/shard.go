// Package shard divides a model's tensors over ranks that compute the model together, each on a machine, a device or a
// thread of its own.
//
// How a tensor divides is stated beside it in the architecture's tensor table ([table.Split]). This package turns that
// into ranges of elements and bytes. It knows neither files nor arrays, so that any reader of tensors can read a
// rank's part only.
package shard

import (
	"errors"
	"fmt"

	"github.com/ingotml/ingot/arch/table"
)

// ErrRanks reports a model that cannot be divided over ranks.
var ErrRanks = errors.New("the model cannot be divided over ranks")

// Range is a range of indices of an axis, without End.
type Range struct{ Begin, End int64 }

// Len returns the number of indices.
func (r Range) Len() int64 { return r.End - r.Begin }

// Part is what a rank has of a tensor.
type Part struct {
	Axis   int     // the dimension that is divided
	Of     int64   // its length in the whole tensor
	Ranges []Range // of its indices, ascending
	// Sum: the inputs of a matrix are divided, so the outputs of all ranks are added.
	Sum bool
	// Copies is the number of ranks that have the same part: with more ranks than KV heads, several have the same head.
	Copies int
	// Before and After are the numbers of indices at both ends of the only range that belong to other ranks. They are
	// there because groups of quantized elements are not cut; see Cover.
	Before, After int64
	Absent        bool // the rank has nothing of the tensor
}

// Len returns the number of indices that the rank has.
func (p Part) Len() (n int64) {
	for _, r := range p.Ranges {
		n += r.Len()
	}
	return n
}

// Own returns the number of indices that the rank computes with.
func (p Part) Own() int64 { return p.Len() - p.Before - p.After }

// Within returns the range of the part's own indices that a range of the whole axis becomes.
func (p Part) Within(whole Range) Range {
	var out Range
	for _, r := range p.Ranges {
		out.Begin += min(r.End, max(r.Begin, whole.Begin)) - r.Begin
		out.End += min(r.End, max(r.Begin, whole.End)) - r.Begin
	}
	return out
}

// Cover returns the part extended to multiples of unit indices at both ends, for tensors whose last axis has groups of
// quantized elements. What it adds meets zeros.
func (p Part) Cover(unit int64) Part {
	if len(p.Ranges) != 1 || unit < 2 {
		return p
	}
	r := p.Ranges[0]
	p.Before = r.Begin % unit
	p.After = min(p.Of, (r.End+unit-1)/unit*unit) - r.End
	p.Ranges = []Range{{r.Begin - p.Before, r.End + p.After}}
	return p
}

// Shape returns the shape of the rank's part of an array. The array may have fewer elements than the tensor along the
// divided axis, such as codes in words, or scales of groups; each then stands for equally many.
func (p Part) Shape(whole []int64) ([]int64, error) {
	by, err := p.scaled(whole)
	if err != nil {
		return nil, err
	}
	shape := append([]int64(nil), whole...)
	shape[p.Axis] = by.Len()
	return shape, nil
}

// scaled returns the part in elements of an array of the given shape.
func (p Part) scaled(whole []int64) (Part, error) {
	if p.Axis >= len(whole) {
		return p, fmt.Errorf("an array %v has no axis %d: %w", whole, p.Axis, ErrRanks)
	}
	have := whole[p.Axis]
	ranges := make([]Range, len(p.Ranges))
	for i, r := range p.Ranges {
		if r.Begin*have%p.Of != 0 || r.End*have%p.Of != 0 {
			return p, fmt.Errorf("elements %d to %d of %d do not begin and end at elements of an array %v: %w",
				r.Begin, r.End, p.Of, whole, ErrRanks)
		}
		ranges[i] = Range{r.Begin * have / p.Of, r.End * have / p.Of}
	}
	p.Ranges, p.Of = ranges, have
	return p, nil
}

// Bytes returns the ranges of bytes that the rank has of an array of the given shape with elements of size bytes, in
// order. The shape is as for Shape.
func (p Part) Bytes(whole []int64, size int64) ([]Range, error) {
	by, err := p.scaled(whole)
	if err != nil {
		return nil, err
	}
	outer, inner := int64(1), size
	for i, n := range whole {
		switch {
		case i < p.Axis:
			outer *= n
		case i > p.Axis:
			inner *= n
		}
	}
	var out []Range
	for i := range outer {
		at := i * by.Of * inner
		for _, r := range by.Ranges {
			next := Range{at + r.Begin*inner, at + r.End*inner}
			if last := len(out) - 1; last >= 0 && out[last].End == next.Begin {
				out[last].End = next.End
			} else {
				out = append(out, next)
			}
		}
	}
	return out, nil
}

// Parts returns what a rank has of the tensors of a table, by name. Tensors that are not in it are on all ranks.
func Parts(t table.Table, rank, size int) (map[string]Part, error) {
	if size < 1 || rank < 0 || rank >= size {
		return nil, fmt.Errorf("rank %d of %d: %w", rank, size, ErrRanks)
	}
	if t.Undivided != "" && size > 1 {
		return nil, fmt.Errorf("%s: %s: %w", t.ModelType, t.Undivided, ErrRanks)
	}
	parts := map[string]Part{}
	params := t.Params()
	for _, s := range t.Specs {
		if size == 1 || s.Split.Kind == table.ByToken && !pays(s, params, size) {
			continue
		}
		if p, divides := partOf(s, rank, size); divides {
			parts[s.Name] = p
		}
	}
	return parts, nil
}

// pays reports whether a table of tokens' vectors is divided. Each lookup is then a sum over the ranks, so it must save
// each of them 2 % of its part of the model's params.
func pays(s table.Spec, params int64, size int) bool {
	return 50*int64(size-1)*s.Shape[0]*s.Shape[1] >= params
}

// partOf returns what a rank has of a tensor. It returns false if the tensor is on all ranks.
func partOf(s table.Spec, rank, size int) (Part, bool) {
	by := s.Split
	p := Part{Axis: by.Axis, Copies: 1}
	switch by.Kind {
	case table.Replicated, "":
		return p, false
	case table.RankZero:
		return Part{Absent: true}, rank > 0
	}
	p.Of, p.Sum = s.Shape[by.Axis], by.Axis == len(s.Shape)-1 && len(s.Shape) == 2
	sections := by.Sections
	if sections == nil {
		sections = []int64{p.Of}
	}
	var at int64
	for _, n := range sections {
		r, ok := Range{}, true
		if by.Parts == 0 {
			r, ok = Elements(n, rank, size)
		} else {
			r, p.Copies, ok = heads(by, n, rank, size)
		}
		if !ok {
			return p, false
		}
		p.Ranges = append(p.Ranges, Range{at + r.Begin, at + r.End})
		at += n
	}
	return p, true
}

// Elements returns the range of n elements that a rank has. It is cut at multiples of 64 or 32, the usual groups of
// quantized elements, where the ranges then still differ by little. It returns false if there are fewer than ranks.
func Elements(n int64, rank, size int) (Range, bool) {
	if n < int64(size) {
		return Range{}, false
	}
	unit := int64(1)
	for _, u := range []int64{64, 32} {
		if n%u == 0 && (n/u%int64(size) == 0 || n/u >= 8*int64(size)) {
			unit = u
			break
		}
	}
	cut := func(r int) int64 { return n / unit * int64(r) / int64(size) * unit }
	end := cut(rank + 1)
	if rank == size-1 {
		end = n
	}
	return Range{cut(rank), end}, true
}

// heads returns the range of n elements, which are by.Parts equal parts, that a rank has, and the number of ranks that
// have the same. It returns false if the tensor, and all others that are divided alike, are on all ranks.
func heads(by table.Split, n int64, rank, size int) (Range, int, bool) {
	ranks, r := int64(size), int64(rank)
	if ranks <= by.Parts {
		one := n / by.Parts
		return Range{by.Parts * r / ranks * one, by.Parts * (r + 1) / ranks * one}, 1, true
	}
	sharing := ranks / by.Parts // ranks that share a part
	if ranks%by.Parts != 0 || by.Within < sharing {
		return Range{}, 0, false
	}
	one := n / by.Parts
	begin := r / sharing * one
	if by.Shared {
		return Range{begin, begin + one}, int(sharing), true
	}
	at, each := r%sharing, one/by.Within
	return Range{begin + by.Within*at/sharing*each, begin + by.Within*(at+1)/sharing*each}, 1, true
}
