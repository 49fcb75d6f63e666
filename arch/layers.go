package arch

import (
	"strconv"
	"strings"
)

// LayerOf returns the number of the layer that a tensor of the table belongs to, from 0, of a model with that many
// layers. It returns -1 for the tensors of no layer: embeddings, norms and heads at the ends, heads that draft, towers.
func (t Table) LayerOf(name string, layers int) int {
	if len(t.Specs) == 0 {
		return -1
	}
	first := strings.TrimSuffix(t.Specs[0].Name, ".weight") // the embedding
	prefix := first[:strings.LastIndexByte(first, '.')+1]
	rest, ok := strings.CutPrefix(name, prefix+"layers.")
	if !ok {
		return -1
	}
	number, _, _ := strings.Cut(rest, ".")
	if i, err := strconv.Atoi(number); err == nil && i < layers {
		return i
	}
	return -1
}

// SplitLayer returns the name of a tensor with "*" in place of its first number, which is that of its layer, and the
// number; -1 if there is none. Tensors of a kind in different layers have the same pattern.
func SplitLayer(name string) (pattern string, layer int) {
	words := strings.Split(name, ".")
	for i, w := range words {
		if n, err := strconv.Atoi(w); err == nil && n >= 0 {
			words[i] = "*"
			return strings.Join(words, "."), n
		}
	}
	return name, -1
}

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
func Uses(m Model, t Table, layers int, name string) []int {
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

// Carried implements [Carrier]: the embeddings of the layers that follow.
func (m *Gemma4) Carried(layer int) int64 {
	return int64(m.Hidden) + int64(m.Layers-layer)*int64(m.PerLayerHidden)
}

// Carried implements [Carrier].
func (m *Gemma3n) Carried(layer int) int64 {
	return m.Gemma4.Carried(layer) + int64(m.Streams-1)*int64(m.Hidden)
}

// Carried implements [Carrier].
func (m *DeepseekV4) Carried(int) int64 { return int64(m.Streams.Count) * int64(m.Hidden) }

// Carried implements [Carrier].
func (m *Qwen4Exp) Carried(int) int64 { return int64(m.Streams) * int64(m.Hidden) }

// Carried implements [Carrier]: the values of the first layer.
func (m *Rwkv7) Carried(layer int) int64 { return carriedTwice(m.Hidden, layer < m.Layers) }

// Carried implements [Carrier]: the embeddings.
func (m *Zamba2) Carried(layer int) int64 { return carriedTwice(m.Hidden, layer < m.Layers) }

func carriedTwice(hidden int, twice bool) int64 {
	if twice {
		return 2 * int64(hidden)
	}
	return int64(hidden)
}

// Link implements [Linked]: layers read the keys and values of earlier ones.
func (m *Gemma4) Link(i int) int { return m.Layer[i].KV }

// Borrowed implements [Linked].
func (m *Gemma4) Borrowed(int) string { return "" }

// Link implements [Linked]: layers without an indexer attend to what the last one has chosen.
func (m *LatentDecoder) Link(i int) int {
	for m.Index.Heads > 0 && i > 0 && !m.Index.Full[i] {
		i--
	}
	return i
}

// Borrowed implements [Linked].
func (m *LatentDecoder) Borrowed(int) string { return "" }

// Link implements [Linked].
func (m *Zamba2) Link(i int) int { return i }

// Borrowed implements [Linked]: layers share transformer blocks. Each use has adapters of its own.
func (m *Zamba2) Borrowed(i int) string {
	if !m.Hybrid[i] {
		return ""
	}
	name, _ := m.Shared(i)
	return name
}
