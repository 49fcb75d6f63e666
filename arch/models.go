package arch

import (
	"reflect"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/precision"
	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/quantize/recipe"
)

// Described is implemented by the configurations that are data.
type Described interface {
	Model
	Decoder() config.Decoder
}

// ReadShare returns the share of a tensor's elements that decoding reads for a token: a row of an embedding that is not
// the head, the chosen experts of a stack, and all of any other tensor.
func ReadShare(m Model, s table.Spec) float64 {
	if s.IsEmbedding() {
		for _, other := range m.Table().Specs {
			if other.IsHead() {
				return 1 / float64(max(s.Shape[0], 1))
			}
		}
		return 1
	}
	if e, ok := expertsOf(m); ok && len(s.Shape) == 3 && s.Shape[0] == int64(e.Count) && e.PerToken > 0 {
		return float64(e.PerToken) / float64(e.Count)
	}
	return 1
}

// expertsOf finds the routed experts in a model's struct.
func expertsOf(m Model) (config.Experts, bool) {
	return findExperts(reflect.ValueOf(m), 0)
}

// deepestExperts bounds how deep a model's struct has its experts.
const deepestExperts = 6

func findExperts(v reflect.Value, depth int) (config.Experts, bool) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if !v.IsValid() || v.Kind() != reflect.Struct || depth > deepestExperts {
		return config.Experts{}, false
	}
	if v.Type() == reflect.TypeFor[config.Experts]() {
		e := config.Experts{Count: int(v.FieldByName("Count").Int()), PerToken: int(v.FieldByName("PerToken").Int())}
		return e, e.Count > 0
	}
	for i := range v.NumField() {
		if e, ok := findExperts(v.Field(i), depth+1); ok {
			return e, true
		}
	}
	return config.Experts{}, false
}

// HasHead reports whether a model has an output head, of its own or the embedding. One without computes embeddings
// only.
func HasHead(m Model) bool { return !config.CommonOf(m).Headless }

// Linked is implemented by model types whose layers use more of earlier layers than the rows that these return.
type Linked interface {
	// Link returns the first layer that must be on the rank of layer i, at most i, if ranks have different layers.
	Link(i int) int
	// Borrowed returns the prefix of the tensors of another layer that layer i also uses; "" if there are none.
	Borrowed(i int) string
}

// Link returns the first layer that must be on the rank of layer i of a model.
func Link(m Model, i int) int {
	if l, ok := m.(Linked); ok {
		return l.Link(i)
	}
	return i
}

// Uses returns which of the layers of a model use a tensor of its table; nil if it belongs to no layer.
func Uses(m Model, t table.Table, layers int, name string) []int {
	own := t.LayerOf(name, layers)
	if own < 0 {
		return nil
	}
	uses := []int{own}
	if l, ok := m.(Linked); ok {
		for i := range layers {
			if borrowed := l.Borrowed(i); i != own && borrowed != "" && strings.HasPrefix(name, borrowed) {
				uses = append(uses, i)
			}
		}
	}
	return uses
}

// Carrier is implemented by model types that pass more than a vector of the hidden width from layer to layer.
type Carrier interface {
	// Carried returns the number of elements that go with each row to a rank that begins with a layer, or after the last
	// layer to rank 0.
	Carried(layer int) int64
}

// Carried returns the number of elements that go with each row of a model to a rank that begins with a layer.
func Carried(m Model, layer int) int64 {
	if c, ok := m.(Carrier); ok {
		return c.Carried(layer)
	}
	return m.Facts().Hidden
}

// RulesOf returns the precision rules of a model in a rule set, or in the default one if set is "".
func RulesOf(m Model, set recipe.RuleSet) precision.Rules {
	r := m.Rules()
	r.Set = set
	return r
}

// StateElements returns the size of a model's state for a sequence of that many tokens, over all layers.
func StateElements(m Model, tokens int64) (n int64) {
	for _, l := range m.State() {
		n += l.Elements(tokens)
	}
	return n
}

// Wide reports whether activations of a model exceed the range of float16.
func Wide(m Model) bool { return byName(m.Facts().ModelType).Wide }

// Equalizable reports whether the decoder layers of a model have the form of Llama's.
func Equalizable(m Model) bool { return byName(m.Facts().ModelType).Equalizable }

// Published returns how checkpoints that declare a model_type have the tensors of its table.
func Published(modelType string) table.Published {
	i := slices.IndexFunc(known, func(a Arch) bool { return a.goesBy(modelType) })
	if i < 0 {
		return table.Published{}
	}
	if p, ok := known[i].Variants[modelType]; ok {
		return p
	}
	return known[i].Published
}
