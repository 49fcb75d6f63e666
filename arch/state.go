package arch

// LayerState is the size of a layer's state for one sequence, in elements.
type LayerState struct {
	PerToken int64 // of each token in the KV cache
	Window   int64 // maximum number of tokens in the KV cache; 0 = unlimited
	Fixed    int64 // of the sequence, whatever its length
	PerEntry int64 // of each Rate tokens
	Rate     int64
	Exact    bool // it is not quantized with the KV cache
}

// Elements returns the size of the layer's state for a sequence of that many tokens.
func (l LayerState) Elements(tokens int64) int64 {
	if l.Window > 0 {
		tokens = min(tokens, l.Window)
	}
	n := l.Fixed + l.PerToken*tokens
	if l.Rate > 0 {
		n += l.PerEntry * (tokens / l.Rate)
	}
	return n
}

// StateElements returns the size of a model's state for a sequence of that many tokens, over all layers.
func StateElements(m Model, tokens int64) (n int64) {
	for _, l := range m.State() {
		n += l.Elements(tokens)
	}
	return n
}

// kvStates returns the states of the layers if each has a KV cache. Layers for which slides is true cache a window; nil
// means none.
func (c Common) kvStates(window int, slides func(i int) bool) []LayerState {
	list := make([]LayerState, c.Layers)
	for i := range list {
		list[i].PerToken = 2 * int64(c.KVHeads) * int64(c.HeadDim)
		if slides != nil && slides(i) {
			list[i].Window = int64(window)
		}
	}
	return list
}
