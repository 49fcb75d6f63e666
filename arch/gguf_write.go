package arch

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// GGUFPair is a metadata key with its value: a string, a bool, an int, a float32, or a list of bools or ints.
type GGUFPair struct {
	Key   string
	Value any
}

// GGUFHeader is what a file says of a model.
type GGUFHeader struct {
	Metadata []GGUFPair
	// Factors are the tensors of rope frequencies' factors, by name.
	Factors map[string][]float32
}

// WritableGGUF lists the model types that can be written.
func WritableGGUF() []string {
	var list []string
	for _, a := range known {
		if slices.ContainsFunc(a.GGUF, func(g GGUF) bool { return !g.ImportOnly }) {
			list = append(list, a.ModelType)
		}
	}
	return list
}

// GGUFOf returns how a model is written as a GGUF file, and what its file says. [GGUF.Check] tells whether that is all
// of it.
func GGUFOf(m Model) (GGUF, GGUFHeader, error) {
	for _, a := range known {
		if a.ModelType != m.Facts().ModelType || len(a.GGUF) == 0 {
			continue
		}
		for _, g := range a.GGUF {
			if !g.ImportOnly && (g.For == nil || g.For(m)) {
				h, err := g.header(m)
				return g, h, err
			}
		}
	}
	return GGUF{}, GGUFHeader{}, fmt.Errorf("%w: models of class %s cannot be written as GGUF (possible: %s)",
		ErrGGUF, m.Facts().Architecture, strings.Join(WritableGGUF(), ", "))
}

// header is the inverse of MakeConfig.
func (g GGUF) header(m Model) (GGUFHeader, error) {
	h := GGUFHeader{Factors: map[string][]float32{}}
	if why := g.refuses(m); why != "" {
		return h, fmt.Errorf("%w: llama.cpp's %s %s", ErrGGUF, g.Architecture, why)
	}
	add := func(key string, value any) {
		key = g.Architecture + "." + key
		for i, p := range h.Metadata {
			if p.Key == key {
				h.Metadata[i].Value = value
				return
			}
		}
		h.Metadata = append(h.Metadata, GGUFPair{key, value})
	}
	c := commonOf(m)
	for _, k := range g.Keys {
		if v, ok := valueOf(m, k.Field); ok {
			add(k.Key, v)
		}
	}
	add("vocab_size", c.Vocab)
	rope, _ := fieldOf[Rope](m, "Rope")
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
	sliding, _ := fieldOf[[]bool](m, "Sliding")
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
func (g GGUF) refuses(m Model) string {
	c, l := commonOf(m), g.Limits
	rope, _ := fieldOf[Rope](m, "Rope")
	switch {
	case l.Biases == noBiases && c.AttentionBias:
		return "has no biases"
	case l.Biases < biasesOfAttention && c.OutputBias:
		return "has no bias of attention's output"
	case l.Biases < allBiases && c.MLPBias:
		return "has no biases of feed-forward blocks"
	case l.Biases == biasesRequired && !c.AttentionBias:
		return "has biases"
	case l.Square && c.Heads*c.HeadDim != c.Hidden:
		return fmt.Sprintf("has heads of hidden_size/num_attention_heads, and the model of %d", c.HeadDim)
	case l.OwnHead && c.TieEmbeddings:
		return "has no tied embeddings"
	case l.Tied && !c.TieEmbeddings:
		return "has tied embeddings"
	case rope.Type == RopeYarn && !l.Betas && (rope.BetaFast != 32 || rope.BetaSlow != 1):
		return "has yarn with beta_fast 32 and beta_slow 1"
	case g.Refuse != nil:
		return g.Refuse(m)
	}
	return ""
}

// has reports whether a key is one of the mapping.
func (g GGUF) has(key string) bool {
	return slices.ContainsFunc(g.Keys, func(k GGUFKey) bool { return k.Key == key })
}

// addExperts adds what llama.cpp reads of experts. In a file, experts are in all layers but the first ones.
func (g GGUF) addExperts(m Model, add func(string, any)) error {
	e, ok := fieldOf[Experts](m, "Experts")
	sparse, _ := fieldOf[[]bool](m, "Sparse")
	first := slices.Index(sparse, true)
	if !ok || e.Count == 0 || first < 0 {
		return nil
	}
	add("expert_feed_forward_length", e.Intermediate)
	if width, _ := fieldOf[int](m, "Intermediate"); width == 0 {
		add("feed_forward_length", e.Intermediate)
	}
	if r, ok := fieldOf[Router](m, "Router"); ok {
		gating := 1 // softmax
		if r.Sigmoid {
			gating = 2
		}
		add("expert_gating_func", gating)
		add("expert_weights_norm", e.NormTopK)
	}
	if shared, ok := fieldOf[int](m, "Shared"); ok && shared > 0 {
		add("expert_shared_feed_forward_length", shared)
		if shared%e.Intermediate == 0 {
			add("expert_shared_count", shared/e.Intermediate)
		}
	}
	if g.Limits.AnySparse {
		return nil
	}
	if slices.Contains(sparse[first:], false) {
		return fmt.Errorf("%w: llama.cpp's %s has experts in all layers after the dense ones", ErrGGUF, g.Architecture)
	}
	if g.has("interleave_moe_layer_step") {
		add("interleave_moe_layer_step", 1)
	}
	if !g.has("leading_dense_block_count") && first > 0 {
		return fmt.Errorf("%w: llama.cpp's %s has experts in all layers", ErrGGUF, g.Architecture)
	}
	if g.has("leading_dense_block_count") {
		add("leading_dense_block_count", first)
	}
	return nil
}

// writeRope says how positions are scaled. rotated of the dim channels of a head are rotated.
func (g GGUF) writeRope(r Rope, dim, rotated int, h *GGUFHeader, add func(string, any)) error {
	refuse := func() error {
		return fmt.Errorf("%w: rope of type %s with these parameters cannot be written as GGUF", ErrGGUF, r.Type)
	}
	switch r.Type {
	case "", RopeDefault:
	case RopeProportional: // pairs that are not rotated have a factor that stops them
		list := slices.Repeat([]float32{1e30}, dim/2)
		for i := range rotated / 2 {
			list[i] = 1
		}
		h.Factors[ggufFactors] = list
	case RopeLinear:
		add("rope.scaling.type", "linear")
		add("rope.scaling.factor", float32(r.Factor))
	case RopeYarn:
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
		if r.AttentionFactor != 0 { // see ggufAttentionFactor
			add("rope.scaling.attn_factor", float32(r.AttentionFactor/(0.1*math.Log(max(r.Factor, 1))+1)))
		}
	case RopeLlama3:
		list := make([]float32, rotated/2)
		for i := range list {
			freq := float32(1 / math.Pow(r.Theta, float64(2*i)/float64(rotated)))
			list[i] = freq / r.llama3(i, freq)
		}
		h.Factors[ggufFactors] = list
	case RopeLong:
		if r.AttentionFactor == 1 && slices.Equal(r.ShortFactor, r.LongFactor) {
			h.Factors[ggufFactors] = floats32(r.ShortFactor) // as such factors are imported
			return nil
		}
		h.Factors[ggufShort], h.Factors[ggufLong] = floats32(r.ShortFactor), floats32(r.LongFactor)
		add("rope.scaling.attn_factor", float32(r.longScale(0)))
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
func (g GGUF) FindTo(name string) (GGUFTensor, bool) {
	name = strings.TrimPrefix(name, nestedText)
	for _, t := range g.Tensors {
		if t.To == "" {
			continue
		}
		n, ok := GGUFTensor{Name: t.To}.layer(name)
		if !ok {
			continue
		}
		t.Name = strings.Replace(t.Name, "*", strconv.FormatInt(n, 10), 1)
		return t.of(n), true
	}
	return GGUFTensor{}, false
}

// SpecialTokens returns the tokens that begin and end a text, as config.json names them.
func SpecialTokens(m Model) (bos, eos []int32) {
	c := commonOf(m)
	return c.BOS, c.EOS
}

// commonOf returns what decoders share.
func commonOf(m Model) Common {
	if d, ok := m.(interface{ common() Common }); ok {
		return d.common()
	}
	return Common{}
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

// fieldOf returns a field of a model by its path, or of its mixture of experts.
func fieldOf[T any](m Model, path string) (out T, ok bool) {
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
