package table

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
