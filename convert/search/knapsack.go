package search

import (
	"cmp"
	"math"
	"slices"

	"github.com/ingotml/ingot/convert/plan"
)

// step moves a tensor from one option to a larger one on its convex hull.
type step struct {
	tensor, to int
	cost, gain float64
	bytes      int64
}

// path returns the smallest choice, and the steps from it to the best one, the most gain by cost first. The steps of a
// tensor are in order, because hulls are convex.
func (s *searcher) path() (choice, []step) {
	c := make(choice, len(s.tensors))
	var steps []step
	for i, t := range s.tensors {
		loss := make([]float64, len(t.options))
		for k, o := range t.options {
			loss[k] = s.groups[t.group].coefficient * o.err
		}
		hull := t.hull(loss)
		c[i] = hull[0]
		for k := 1; k < len(hull); k++ {
			from, to := hull[k-1], hull[k]
			bytes := t.options[to].planned.Bytes - t.options[from].planned.Bytes
			steps = append(steps, step{i, to, t.share * float64(bytes), loss[from] - loss[to], bytes})
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(b.gain*a.cost, a.gain*b.cost) })
	return c, steps
}

// hull returns the options on the lower convex hull of loss over bytes, from the smallest to the best.
func (t *tensor) hull(loss []float64) (hull []int) {
	bytes := func(i int) float64 { return float64(t.options[i].planned.Bytes) }
	for i := range t.options {
		if n := len(hull); n > 0 && loss[i] >= loss[hull[n-1]] {
			continue
		}
		if n := len(hull); n > 0 && bytes(i) == bytes(hull[n-1]) {
			hull = hull[:n-1]
		}
		for len(hull) > 1 {
			a, b := hull[len(hull)-2], hull[len(hull)-1]
			if (loss[a]-loss[b])*(bytes(i)-bytes(b)) > (loss[b]-loss[i])*(bytes(b)-bytes(a)) {
				break
			}
			hull = hull[:len(hull)-1]
		}
		hull = append(hull, i)
	}
	return hull
}

// within returns the best choice of at most limit bytes. ok is false if the smallest one has more.
func (s *searcher) within(limit int64) (c choice, ok bool) {
	c, steps := s.path()
	bytes := s.bytes(c)
	if bytes > limit {
		return c, false
	}
	full := map[int]bool{} // tensors whose next step does not fit
	for _, st := range steps {
		if full[st.tensor] || bytes+st.bytes > limit {
			full[st.tensor] = true
			continue
		}
		c[st.tensor] = st.to
		bytes += st.bytes
	}
	return c, true
}

// below returns the smallest choice with a predicted divergence of at most goal. reached is false if there is none, and
// the choice is the best one.
func (s *searcher) below(goal float64) (c choice, reached bool) {
	c, steps := s.path()
	loss := s.loss(c)
	for _, st := range steps {
		if loss <= goal {
			return c, true
		}
		c[st.tensor] = st.to
		loss -= st.gain
	}
	return c, s.loss(c) <= goal
}

// curvePoints is how many predicted points a curve has at most.
const curvePoints = 16

// found describes a trial, and the trade-off around it.
func (s *searcher) found(best trial) *Found {
	scale := 1.0
	if best.predicted > 0 && best.kl > 0 {
		scale = best.kl / best.predicted
	}
	f := &Found{
		Precision: s.precision(best.choice), Bytes: s.bytes(best.choice), Predicted: best.predicted, MeanKL: best.kl,
		Measured: s.probed + len(s.trials),
	}
	f.Bits, f.Types = s.bits(f.Bytes), s.types(best.choice)
	c, steps := s.path()
	at, loss := s.bytes(c), s.loss(c)
	last := at
	for _, st := range steps {
		last += st.bytes
	}
	next, every := at, max((last-at)/curvePoints, 1)
	for _, st := range steps {
		if at >= next {
			f.Curve = append(f.Curve, Point{Bytes: at, Bits: s.bits(at), Predicted: math.Max(loss*scale, 0)})
			next = at + every
		}
		at, loss = at+st.bytes, loss-st.gain
	}
	f.Curve = append(f.Curve, Point{Bytes: at, Bits: s.bits(at), Predicted: math.Max(loss*scale, 0)})
	for _, t := range s.trials {
		n := s.bytes(t.choice)
		f.Curve = append(f.Curve, Point{
			Bytes: n, Bits: s.bits(n), Predicted: t.predicted, MeanKL: &t.kl, Chosen: slices.Equal(t.choice, best.choice),
		})
	}
	slices.SortStableFunc(f.Curve, func(a, b Point) int { return cmp.Compare(a.Bytes, b.Bytes) })
	return f
}

// types sums the tensors of a choice by type.
func (s *searcher) types(c choice) []plan.ByType {
	byType := map[string]*plan.ByType{}
	for i, t := range s.tensors {
		p := t.options[c[i]].planned
		if byType[p.Type] == nil {
			byType[p.Type] = &plan.ByType{Type: p.Type}
		}
		b := byType[p.Type]
		b.Tensors++
		b.Params += p.Params()
		b.Bytes += p.Bytes
	}
	var list []plan.ByType
	for _, b := range byType {
		list = append(list, *b)
	}
	slices.SortFunc(list, func(a, b plan.ByType) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Type, b.Type))
	})
	return list
}
