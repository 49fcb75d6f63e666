package gguf

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/table"
)

// Pair is a metadata key with its value: a string, a bool, an int, a float32, or a list of bools or ints.
type Pair struct {
	Key   string
	Value any
}

// Header is what a file says of a model.
type Header struct {
	Metadata []Pair
	// Factors are the tensors of rope frequencies' factors, by name.
	Factors map[string][]float32
}

// Header is what a file says of a model: the inverse of MakeConfig.
func (g Map) Header(m Model) (Header, error) {
	h := Header{Factors: map[string][]float32{}}
	if why := g.refuses(m); why != "" {
		return h, fmt.Errorf("%w: llama.cpp's %s %s", ErrMetadata, g.Architecture, why)
	}
	add := func(key string, value any) {
		key = g.Architecture + "." + key
		for i, p := range h.Metadata {
			if p.Key == key {
				h.Metadata[i].Value = value
				return
			}
		}
		h.Metadata = append(h.Metadata, Pair{key, value})
	}
	c := config.CommonOf(m)
	for _, k := range g.Keys {
		if v, ok := valueOf(m, k.Field); ok {
			add(k.Key, v)
		}
	}
	add("vocab_size", c.Vocab)
	rope, _ := Field[config.Rope](m, "Rope")
	dim := c.HeadDim
	if g.HeadDim != nil {
		dim = g.HeadDim(m)
	}
	rotated := dim
	if rope.PartialFactor > 0 {
		rotated = int(float64(dim) * rope.PartialFactor)
	}
	add("attention.value_length", c.HeadDim)
	add("rope.dimension_count", rotated)
	sliding, _ := Field[[]bool](m, "Sliding")
	if slices.Contains(sliding, true) && g.has("attention.sliding_window") {
		add("attention.sliding_window_pattern", sliding)
	}
	if err := g.addExperts(m, add); err != nil {
		return h, err
	}
	if err := g.writeRope(rope, dim, rotated, &h, add); err != nil {
		return h, err
	}
	if g.Also != nil {
		for _, p := range g.Also(m) {
			add(p.Key, p.Value)
		}
	}
	return h, nil
}

// refuses says why llama.cpp cannot compute a model; "" = it can.
func (g Map) refuses(m Model) string {
	c, l := config.CommonOf(m), g.Limits
	rope, _ := Field[config.Rope](m, "Rope")
	switch {
	case l.Biases == NoBiases && c.AttentionBias:
		return "has no biases"
	case l.Biases < AttentionBiases && c.OutputBias:
		return "has no bias of attention's output"
	case l.Biases < AllBiases && c.MLPBias:
		return "has no biases of feed-forward blocks"
	case l.Biases == RequiredBiases && !c.AttentionBias:
		return "has biases"
	case l.Square && c.Heads*c.HeadDim != c.Hidden:
		return fmt.Sprintf("has heads of hidden_size/num_attention_heads, and the model of %d", c.HeadDim)
	case l.OwnHead && c.TieEmbeddings:
		return "has no tied embeddings"
	case l.Tied && !c.TieEmbeddings:
		return "has tied embeddings"
	case rope.Type == config.RopeYarn && !l.Betas && (rope.BetaFast != 32 || rope.BetaSlow != 1):
		return "has yarn with beta_fast 32 and beta_slow 1"
	case g.Refuse != nil:
		return g.Refuse(m)
	}
	return ""
}

// has reports whether a key is one of the mapping.
func (g Map) has(key string) bool {
	return slices.ContainsFunc(g.Keys, func(k Key) bool { return k.Key == key })
}

// addExperts adds what llama.cpp reads of experts. In a file, experts are in all layers but the first ones.
func (g Map) addExperts(m Model, add func(string, any)) error {
	e, ok := Field[config.Experts](m, "Experts")
	sparse, _ := Field[[]bool](m, "Sparse")
	first := slices.Index(sparse, true)
	if !ok || e.Count == 0 || first < 0 {
		return nil
	}
	add("expert_feed_forward_length", e.Intermediate)
	if width, _ := Field[int](m, "Intermediate"); width == 0 {
		add("feed_forward_length", e.Intermediate)
	}
	if r, ok := Field[config.Router](m, "Router"); ok {
		gating := 1 // softmax
		if r.Sigmoid {
			gating = 2
		}
		add("expert_gating_func", gating)
		add("expert_weights_norm", e.NormTopK)
	}
	if shared, ok := Field[int](m, "Shared"); ok && shared > 0 {
		add("expert_shared_feed_forward_length", shared)
		if shared%e.Intermediate == 0 {
			add("expert_shared_count", shared/e.Intermediate)
		}
	}
	if g.Limits.AnySparse {
		return nil
	}
	if slices.Contains(sparse[first:], false) {
		return fmt.Errorf("%w: llama.cpp's %s has experts in all layers after the dense ones", ErrMetadata, g.Architecture)
	}
	if g.has("interleave_moe_layer_step") {
		add("interleave_moe_layer_step", 1)
	}
	if !g.has("leading_dense_block_count") && first > 0 {
		return fmt.Errorf("%w: llama.cpp's %s has experts in all layers", ErrMetadata, g.Architecture)
	}
	if g.has("leading_dense_block_count") {
		add("leading_dense_block_count", first)
	}
	return nil
}

// writeRope says how positions are scaled. rotated of the dim channels of a head are rotated.
func (g Map) writeRope(r config.Rope, dim, rotated int, h *Header, add func(string, any)) error {
	refuse := func() error {
		return fmt.Errorf("%w: rope of type %s with these parameters cannot be written as GGUF", ErrMetadata, r.Type)
	}
	switch r.Type {
	case "", config.RopeDefault:
	case config.RopeProportional: // pairs that are not rotated have a factor that stops them
		list := slices.Repeat([]float32{1e30}, dim/2)
		for i := range rotated / 2 {
			list[i] = 1
		}
		h.Factors[Factors] = list
	case config.RopeLinear:
		add("rope.scaling.type", "linear")
		add("rope.scaling.factor", float32(r.Factor))
	case config.RopeYarn:
		scales := r.MScale != 0 || r.MScaleAllDim != 0
		if scales && (g.LogScale == 0 || r.MScale != r.MScaleAllDim) || !r.Truncate && !g.Limits.Unrounded {
			return refuse()
		}
		add("rope.scaling.type", "yarn")
		add("rope.scaling.factor", float32(r.Factor))
		add("rope.scaling.original_context_length", r.OriginalMax)
		add("rope.scaling.yarn_beta_fast", float32(r.BetaFast))
		add("rope.scaling.yarn_beta_slow", float32(r.BetaSlow))
		if r.MScaleAllDim != 0 {
			add("rope.scaling.yarn_log_multiplier", float32(r.MScaleAllDim*g.LogScale))
		}
		if r.AttentionFactor != 0 { // see attentionFactor
			add("rope.scaling.attn_factor", float32(r.AttentionFactor/(0.1*math.Log(max(r.Factor, 1))+1)))
		}
	case config.RopeLlama3:
		list := make([]float32, rotated/2)
		for i := range list {
			freq := float32(1 / math.Pow(r.Theta, float64(2*i)/float64(rotated)))
			list[i] = freq / r.Llama3(i, freq)
		}
		h.Factors[Factors] = list
	case config.RopeLong:
		if r.AttentionFactor == 1 && slices.Equal(r.ShortFactor, r.LongFactor) {
			h.Factors[Factors] = floats32(r.ShortFactor) // as such factors are imported
			return nil
		}
		h.Factors[ShortFactors], h.Factors[LongFactors] = floats32(r.ShortFactor), floats32(r.LongFactor)
		add("rope.scaling.attn_factor", float32(r.LongScaleAt(0)))
	default:
		return refuse()
	}
	return nil
}

func floats32(list []float64) []float32 {
	out := make([]float32, len(list))
	for i, x := range list {
		out[i] = float32(x)
	}
	return out
}

// FindTo returns the entry of a checkpoint's tensor, with the number of a layer in its names.
func (g Map) FindTo(name string) (Tensor, bool) {
	name = strings.TrimPrefix(name, table.NestedText)
	for _, t := range g.Tensors {
		if t.To == "" {
			continue
		}
		n, ok := Tensor{Name: t.To}.layer(name)
		if !ok {
			continue
		}
		t.Name = strings.Replace(t.Name, "*", strconv.FormatInt(n, 10), 1)
		return t.of(n), true
	}
	return Tensor{}, false
}

// valueOf returns the value of a field, as metadata has it. Numbers that are 0 are absent.
func valueOf(m Model, path string) (any, bool) {
	v := reflectField(m, path)
	if !v.IsValid() {
		return nil, false
	}
	switch v.Kind() {
	case reflect.Int:
		return int(v.Int()), v.Int() != 0
	case reflect.Float64:
		return float32(v.Float()), v.Float() != 0
	case reflect.Bool:
		return v.Bool(), true
	}
	return nil, false
}

// Field returns a field of a model by its path, or of its mixture of experts.
func Field[T any](m Model, path string) (out T, ok bool) {
	if v := reflectField(m, path); v.IsValid() {
		out, ok = v.Interface().(T)
	}
	return out, ok
}

func reflectField(m Model, path string) reflect.Value {
	for _, prefix := range []string{"", "Mixture."} {
		v := reflect.Indirect(reflect.ValueOf(m))
		for name := range strings.SplitSeq(prefix+path, ".") {
			if v.Kind() != reflect.Struct || name == "" {
				v = reflect.Value{}
				break
			}
			v = reflect.Indirect(v.FieldByName(name))
		}
		if v.IsValid() {
			return v
		}
	}
	return reflect.Value{}
}
