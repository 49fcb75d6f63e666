package config

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

// KVStates returns the states of the layers if each has a KV cache. Layers for which slides is true cache a window; nil
// means none.
func (c Common) KVStates(window int, slides func(i int) bool) []LayerState {
	list := make([]LayerState, c.Layers)
	for i := range list {
		list[i].PerToken = 2 * int64(c.KVHeads) * int64(c.HeadDim)
		if slides != nil && slides(i) {
			list[i].Window = int64(window)
		}
	}
	return list
}

// Facts are the properties of a model that users and registries see. A runtime reads the model's own struct instead.
type Facts struct {
	ModelType    string // as in arch.Arch
	Architecture string // class name, as published
	DType        string // type that the configuration declares, e.g. "bfloat16"; "" if it declares none
	Vocab        int64
	Hidden       int64
	Layers       int64
	Context      int64 // longest sequence that the model was trained for or that its rope is scaled to
	Params       int64 // elements of all tensors in the table that are not optional
}
