package search

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/convert/plan"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/ingotml/ingot/safetensors"
)

// tensor is a tensor whose type is chosen.
type tensor struct {
	plain   plan.Tensor
	group   int
	share   float64  // of its bytes that is read for a token
	options []option // by bytes
}

// option is a type that a tensor may have.
type option struct {
	of      quantize.Type // 0: the source's
	planned plan.Tensor
	err     float64 // of the outputs
}

// smallest is the type by which the rules of an architecture decide which tensors are quantized: the one that suits the
// most shapes.
var smallest = quantize.Int4.WithGroup(32)

// candidates lists the tensors with a choice, and the types of each.
func (s *searcher) candidates(ctx context.Context) error {
	p, err := s.Plan(ctx, s.Ask)
	if err != nil {
		return err
	}
	s.params = p.Totals.Params
	s.fixed = p.Totals.Bytes
	byName := map[string]*tensor{}
	for _, t := range p.Tensors {
		if !s.chosen(t) {
			continue
		}
		c := &tensor{plain: t, share: 1, options: []option{{planned: t}}}
		if s.Speed && s.Share != nil {
			c.share = s.Share(t.Match.Spec)
		}
		s.fixed -= t.Bytes
		s.tensors = append(s.tensors, c)
		byName[t.Name] = c
	}
	if len(s.tensors) == 0 {
		return fmt.Errorf("%w: the model has no weights whose types could be chosen: "+
			"they are quantized already, or rules name the types of all", ErrGoal)
	}
	for _, of := range quantize.Types() {
		if of.IsCast() {
			continue
		}
		var rules []recipe.Rule
		for _, c := range s.tensors {
			if _, err := of.Parts(quantize.F32, c.plain.Shape); err == nil {
				rules = append(rules, recipe.Rule{Match: c.plain.Name, Type: of})
			}
		}
		if len(rules) == 0 {
			continue
		}
		p, err := s.Plan(ctx, recipe.Precision{Rules: rules})
		if err != nil {
			return err
		}
		for _, t := range p.Tensors {
			if c := byName[t.Name]; c != nil && t.Coding.Target == of {
				c.options = append(c.options, option{of: of, planned: t})
			}
		}
	}
	for _, c := range s.tensors {
		slices.SortStableFunc(c.options, func(a, b option) int { return cmp.Compare(a.planned.Bytes, b.planned.Bytes) })
	}
	s.divide()
	return nil
}

// chosen reports whether the type of a tensor is chosen: it has floating-point elements, the architecture's rules
// quantize it, and no rule of the user names its type.
func (s *searcher) chosen(t plan.Tensor) bool {
	float := t.Source == safetensors.BF16 || t.Source == safetensors.F16 || t.Source == safetensors.F32
	if !float || t.Coding.Target != 0 || t.Name != t.Match.Spec.Name {
		return false
	}
	for _, r := range s.Ask.Rules {
		if ok, _ := path.Match(r.Match, t.Name); ok {
			return false
		}
	}
	of, _ := s.Rules.Precision(t.Name, t.Shape, smallest)
	return of != 0 && !of.IsCast()
}

// group is a set of tensors whose errors count the same.
type group struct {
	name        string
	tensors     []int
	coefficient float64 // divergence by error
}

// probes is about how many groups there are.
const probes = 32

// divide divides the tensors into groups: those of a kind in neighbouring layers.
func (s *searcher) divide() {
	kinds, layers := map[string]bool{}, 0
	for _, c := range s.tensors {
		kind, layer := table.SplitLayer(c.plain.Name)
		kinds[kind], layers = true, max(layers, layer+1)
	}
	bands := min(max(probes/len(kinds), 1), 6)
	index := map[string]int{}
	for i, c := range s.tensors {
		name, layer := table.SplitLayer(c.plain.Name)
		if layer >= 0 {
			name = fmt.Sprintf("%s, part %d of %d", name, layer*bands/layers+1, bands)
		}
		g, ok := index[name]
		if !ok {
			g = len(s.groups)
			index[name] = g
			s.groups = append(s.groups, group{name: name})
		}
		c.group = g
		s.groups[g].tensors = append(s.groups[g].tensors, i)
	}
}

// choice is the index of an option for each tensor.
type choice []int

// source returns the choice of the source's types.
func (s *searcher) source() choice {
	c := make(choice, len(s.tensors))
	for i, t := range s.tensors {
		c[i] = t.at(0)
	}
	return c
}

// at returns the index of the option of a type, or -1.
func (t *tensor) at(of quantize.Type) int {
	return slices.IndexFunc(t.options, func(o option) bool { return o.of == of })
}

// bytes returns the bytes of all tensors.
func (s *searcher) bytes(c choice) int64 {
	n := s.fixed
	for i, t := range s.tensors {
		n += t.options[c[i]].planned.Bytes
	}
	return n
}

// loss returns the predicted divergence.
func (s *searcher) loss(c choice) (sum float64) {
	for i, t := range s.tensors {
		sum += s.groups[t.group].coefficient * t.options[c[i]].err
	}
	return sum
}

// blobKey is a tensor of a type.
type blobKey struct {
	tensor int
	of     quantize.Type
}

// image returns an image of a choice. It writes the blobs that no earlier image has.
func (s *searcher) image(ctx context.Context, c choice) (manifest.Image, error) {
	var rules []recipe.Rule
	missing := map[string]int{}
	for i, t := range s.tensors {
		of := t.options[c[i]].of
		if _, ok := s.blobs[blobKey{i, of}]; !ok && of != 0 {
			rules = append(rules, recipe.Rule{Match: t.plain.Name, Type: of})
			missing[t.plain.Name] = i
		}
	}
	if len(rules) > 0 {
		p, err := s.Plan(ctx, recipe.Precision{Rules: rules})
		if err != nil {
			return manifest.Image{}, err
		}
		written, err := s.Write(ctx, p)
		if err != nil {
			return manifest.Image{}, err
		}
		for _, l := range written.Layers {
			if i, ok := missing[l.Name]; ok && l.Kind == manifest.KindTensor {
				s.blobs[blobKey{i, s.tensors[i].options[c[i]].of}] = l
			}
		}
	}
	of := map[string]manifest.Layer{}
	for i, t := range s.tensors {
		if l, ok := s.blobs[blobKey{i, t.options[c[i]].of}]; ok {
			of[t.plain.Name] = l
		}
	}
	img := s.Plain
	img.Layers = slices.Clone(img.Layers)
	for i, l := range img.Layers {
		if other, ok := of[l.Name]; ok && l.Kind == manifest.KindTensor {
			img.Layers[i] = other
		}
	}
	return img, nil
}

// precision returns the recipe of a choice.
func (s *searcher) precision(c choice) recipe.Precision {
	p := recipe.Precision{Draft: s.Ask.Draft}
	for i, t := range s.tensors {
		if of := t.options[c[i]].of; of != 0 {
			p.Rules = append(p.Rules, recipe.Rule{Match: t.plain.Name, Type: of})
		}
	}
	p.Rules = append(p.Rules, s.Ask.Rules...)
	return p
}
