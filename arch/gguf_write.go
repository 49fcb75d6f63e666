package arch

import (
	"cmp"
	"fmt"
	"math"
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
	Factors  []float32 // of rope frequencies, for the tensor rope_freqs.weight; nil = none
	Lost     []string  // what the format cannot say, for users
}

// ggufDecoder is what the header of a decoder is made of.
type ggufDecoder struct {
	Common
	intermediate int // 0 = not said
	rope         Rope
	window       int
	rotated      int        // channels of a head; 0 = all
	more         []GGUFPair // keys without the architecture, which replace those of every decoder
	lost         []string   // what the format cannot say
	refused      string     // why llama.cpp cannot run the model; "" = it can
}

// WritableGGUF lists the model types that can be written.
func WritableGGUF() []string {
	var list []string
	for _, a := range known {
		if slices.ContainsFunc(a.GGUF, func(g GGUF) bool { return g.write != nil }) {
			list = append(list, a.ModelType)
		}
	}
	return list
}

// GGUFOf returns how a model is written as a GGUF file, and what its file says.
func GGUFOf(config []byte) (GGUF, GGUFHeader, error) {
	m, err := Detect(config)
	if err != nil {
		return GGUF{}, GGUFHeader{}, err
	}
	for _, a := range known {
		for _, g := range a.GGUF {
			if g.write == nil {
				continue
			}
			d, ok := g.write(m)
			if !ok {
				continue
			}
			h, err := g.header(d)
			return g, h, err
		}
	}
	return GGUF{}, GGUFHeader{}, fmt.Errorf("%w: models of class %s cannot be written as GGUF (possible: %s)",
		ErrGGUF, m.Facts().Architecture, strings.Join(WritableGGUF(), ", "))
}

func (g GGUF) header(d ggufDecoder) (GGUFHeader, error) {
	var h GGUFHeader
	if d.refused != "" {
		return h, fmt.Errorf("%w: %s", ErrGGUF, d.refused)
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
	add("block_count", d.Layers)
	add("context_length", d.Context)
	add("embedding_length", d.Hidden)
	if d.intermediate > 0 {
		add("feed_forward_length", d.intermediate)
	}
	add("attention.head_count", d.Heads)
	add("attention.head_count_kv", d.KVHeads)
	add("attention.key_length", d.HeadDim)
	add("attention.value_length", d.HeadDim)
	add("attention.layer_norm_rms_epsilon", float32(d.NormEps))
	add("rope.dimension_count", cmp.Or(d.rotated, d.HeadDim))
	add("rope.freq_base", float32(d.rope.Theta))
	add("vocab_size", d.Vocab)
	if d.window > 0 {
		h.Lost = append(h.Lost, fmt.Sprintf("the sliding window of %d positions: contexts up to it are the same", d.window))
	}
	h.Lost = append(h.Lost, d.lost...)
	if err := g.writeRope(d, &h, add); err != nil {
		return h, err
	}
	for _, p := range d.more {
		add(p.Key, p.Value)
	}
	return h, nil
}

// writeRope says how positions are scaled.
func (g GGUF) writeRope(d ggufDecoder, h *GGUFHeader, add func(string, any)) error {
	switch r := d.rope; {
	case r.PartialFactor != 0 && r.PartialFactor != 1 && d.rotated == 0:
		return fmt.Errorf("%w: llama.cpp's %s rotates whole heads, and the model %v of them", ErrGGUF,
			g.Architecture, r.PartialFactor)
	case r.Type == "" || r.Type == RopeDefault:
	case r.Type == RopeLinear:
		add("rope.scaling.type", "linear")
		add("rope.scaling.factor", float32(r.Factor))
	case r.Type == RopeYarn && r.MScale == 0 && r.MScaleAllDim == 0 && r.Truncate:
		add("rope.scaling.type", "yarn")
		add("rope.scaling.factor", float32(r.Factor))
		add("rope.scaling.original_context_length", r.OriginalMax)
		add("rope.scaling.yarn_beta_fast", float32(r.BetaFast))
		add("rope.scaling.yarn_beta_slow", float32(r.BetaSlow))
		if r.AttentionFactor != 0 { // see ggufAttentionFactor
			add("rope.scaling.attn_factor", float32(r.AttentionFactor/(0.1*math.Log(max(r.Factor, 1))+1)))
		}
	case r.Type == RopeLlama3:
		h.Factors = r.factors(d.HeadDim)
	case r.Type == RopeLong && r.AttentionFactor == 1 && slices.Equal(r.ShortFactor, r.LongFactor):
		for _, factor := range r.ShortFactor { // as such factors are imported
			h.Factors = append(h.Factors, float32(factor))
		}
	default:
		return fmt.Errorf("%w: rope of type %s with these parameters cannot be written as GGUF", ErrGGUF, r.Type)
	}
	return nil
}

// factors returns what llama3 divides the frequencies by.
func (r Rope) factors(dim int) []float32 {
	list := make([]float32, dim/2)
	for i := range list {
		freq := float32(1 / math.Pow(r.Theta, float64(2*i)/float64(dim)))
		list[i] = freq / r.llama3(i, freq)
	}
	return list
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

func writeLlama(m Model) (ggufDecoder, bool) {
	l, ok := m.(*Llama)
	if !ok {
		return ggufDecoder{}, false
	}
	return ggufDecoder{Common: l.Common, intermediate: l.Intermediate, rope: l.Rope, window: l.Window}, true
}

func writeQwen3(m Model) (ggufDecoder, bool) {
	q, ok := m.(*Qwen3)
	if !ok {
		return ggufDecoder{}, false
	}
	return ggufDecoder{Common: q.Common, intermediate: q.Intermediate, rope: q.Rope, window: q.Window}, true
}

func writeQwen3Moe(m Model) (ggufDecoder, bool) {
	q, ok := m.(*Qwen3Moe)
	if !ok || !q.Experts.NormTopK {
		return ggufDecoder{}, false
	}
	return ggufDecoder{
		Common: q.Common, intermediate: q.Intermediate, rope: q.Rope, window: q.Window, more: []GGUFPair{
			{"expert_count", q.Experts.Count}, {"expert_used_count", q.Experts.PerToken},
			{"expert_feed_forward_length", q.Experts.Intermediate},
		},
	}, true
}

// SpecialTokens returns the tokens that begin and end a text, as config.json names them.
func SpecialTokens(m Model) (bos, eos []int32) {
	switch m := m.(type) {
	case *Llama:
		return m.BOS, m.EOS
	case *Qwen3:
		return m.BOS, m.EOS
	case *Qwen3Moe:
		return m.BOS, m.EOS
	case *Gemma3:
		return m.BOS, m.EOS
	case *Qwen35:
		return m.BOS, m.EOS
	case *Qwen35Moe:
		return m.BOS, m.EOS
	case *Glm4MoeLite:
		return m.BOS, m.EOS
	}
	return nil, nil
}
