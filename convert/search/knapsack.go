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

// path returns the cheapest choice, and the steps from it to the best one, the most gain by cost first. The steps of a
// tensor are in order, because hulls are convex. byTime says what costs are, see [tensor.cost].
func (s *searcher) path(byTime bool) (choice, []step) {
	c := make(choice, len(s.tensors))
	var steps []step
	for i, t := range s.tensors {
		var points []point
		for k, o := range t.options {
			points = append(points, point{k, t.cost(o, byTime), s.groups[t.group].coefficient * o.err})
		}
		hull := hullOf(points)
		c[i] = hull[0].option
		for k := 1; k < len(hull); k++ {
			from, to := hull[k-1], hull[k]
			bytes := t.options[to.option].planned.Bytes - t.options[from.option].planned.Bytes
			steps = append(steps, step{i, to.option, to.cost - from.cost, from.loss - to.loss, bytes})
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(b.gain*a.cost, a.gain*b.cost) })
	return c, steps
}

// point is an option of a tensor.
type point struct {
	option     int
	cost, loss float64
}

// hullOf returns the points on the lower convex hull of loss over cost, from the cheapest to the best.
func hullOf(points []point) (hull []point) {
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.cost, b.cost) })
	for _, p := range points {
		if n := len(hull); n > 0 && p.loss >= hull[n-1].loss {
			continue
		}
		if n := len(hull); n > 0 && p.cost == hull[n-1].cost {
			hull = hull[:n-1]
		}
		for len(hull) > 1 {
			a, b := hull[len(hull)-2], hull[len(hull)-1]
			if (a.loss-b.loss)*(p.cost-b.cost) > (b.loss-p.loss)*(b.cost-a.cost) {
				break
			}
			hull = hull[:len(hull)-1]
		}
		hull = append(hull, p)
	}
	return hull
}

// within returns the best choice of at most limit bytes. ok is false if the smallest one has more. Types that take the
// least time are not always the smallest: if they exceed the limit, bytes count instead of time.
func (s *searcher) within(limit int64) (c choice, ok bool) {
	c, steps := s.path(s.Speed)
	if s.Speed && s.bytes(c) > limit {
		c, steps = s.path(false)
	}
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

// below returns the cheapest choice with a predicted divergence of at most goal. reached is false if there is none, and
// the choice is the best one.
func (s *searcher) below(goal float64) (c choice, reached bool) {
	c, steps := s.path(s.Speed)
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
		Measured: s.measured,
	}
	f.Bits, f.Types = s.bits(f.Bytes), s.types(best.choice)
	c, steps := s.path(s.Speed)
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
