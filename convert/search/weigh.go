package search

import (
	"context"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/quantize"
)

// A probe of a group has a divergence between these: enough to be measured, and not so much that it no longer grows
// with the error.
const (
	leastProbe = 0.004
	mostProbe  = 0.4
)

// firstBits are the bits of the first probe of a group.
const firstBits = 3

// weigh measures the coefficients of the groups: the divergence of the model with one group quantized, by the error of
// that group.
func (s *searcher) weigh(ctx context.Context) error {
	for i := range s.groups {
		s.report("sensitivity", i, len(s.groups))
		g := &s.groups[i]
		if c, ok := s.known.Groups[g.name]; ok {
			g.coefficient = c
			continue
		}
		kl, err, failed := s.probe(ctx, g, firstBits)
		other := 0
		switch {
		case failed == nil && kl < leastProbe:
			other = firstBits - 1
		case failed == nil && kl > mostProbe:
			other = firstBits + 1
		}
		if other != 0 {
			kl, err, failed = s.probe(ctx, g, other)
		}
		if failed != nil {
			return failed
		}
		if err > 0 {
			g.coefficient = kl / err
		}
		s.known.Groups[g.name] = g.coefficient
		s.keep()
	}
	return nil
}

// probe measures the divergence of the model with a group in types of the given bits. err is the sum of its errors.
func (s *searcher) probe(ctx context.Context, g *group, bits int) (kl, err float64, failed error) {
	c := s.source()
	for _, i := range g.tensors {
		if at := s.tensors[i].ofBits(bits); at >= 0 {
			c[i] = at
			err += s.tensors[i].options[at].err
		}
	}
	if err == 0 { // nothing is lost
		return 0, 0, nil
	}
	kl, failed = s.measure(ctx, c)
	return kl, err, failed
}

// measure returns the divergence of a choice over the text of the search, which is measured once.
func (s *searcher) measure(ctx context.Context, c choice) (float64, error) {
	id := s.identity(c)
	if kl, ok := s.known.Measured[id]; ok {
		return kl, nil
	}
	kl, err := s.compare(ctx, c, s.Measure)
	if err != nil {
		return 0, err
	}
	s.known.Measured[id] = kl
	s.keep()
	return kl, nil
}

// accept returns the divergence of a choice over the text that the goal is about.
func (s *searcher) accept(ctx context.Context, c choice) (float64, error) {
	if s.Accept == nil {
		return s.measure(ctx, c)
	}
	return s.compare(ctx, c, s.Accept)
}

func (s *searcher) compare(
	ctx context.Context, c choice, measure func(context.Context, manifest.Image, manifest.Image) (float64, error),
) (float64, error) {
	s.measured++
	img, err := s.image(ctx, c)
	if err != nil {
		return 0, err
	}
	return measure(ctx, img, s.Plain)
}

// ofBits returns the index of the affine option with the given bits, in groups of 64 if they fit; or else of the
// smallest option with at least as many; or -1.
func (t *tensor) ofBits(bits int) int {
	for _, group := range []int{64, 32, 128} {
		for i, o := range t.options {
			if o.of.Mode() == "affine" && o.of.Bits() == bits && o.of.Group() == group {
				return i
			}
		}
	}
	for i, o := range t.options {
		if o.of != 0 && o.of != quantize.MXFP8 && o.of.Bits() >= bits {
			return i
		}
	}
	return -1
}

// mostChange bounds the change of a coefficient: differences of divergences are less certain than divergences.
const mostChange = 3

// reweigh measures the coefficients where a choice is: what the divergence loses if a group is as in the source.
func (s *searcher) reweigh(ctx context.Context, at trial) error {
	whole, err := s.measure(ctx, at.choice) // at.kl may be over another text
	if err != nil {
		return err
	}
	source := s.source()
	changed := make([]float64, len(s.groups))
	for i := range s.groups {
		s.report("sensitivity of the result", i, len(s.groups))
		g := &s.groups[i]
		c := append(choice{}, at.choice...)
		var err float64
		for _, k := range g.tensors {
			err += s.tensors[k].options[c[k]].err
			c[k] = source[k]
		}
		changed[i] = g.coefficient
		if err == 0 || g.coefficient == 0 {
			continue
		}
		kl, failed := s.measure(ctx, c)
		if failed != nil {
			return failed
		}
		changed[i] = min(max((whole-kl)/err, g.coefficient/mostChange), g.coefficient*mostChange)
	}
	for i := range s.groups {
		s.groups[i].coefficient = changed[i]
	}
	return nil
}
