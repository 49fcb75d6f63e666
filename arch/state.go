package arch

// LayerState is the size of a layer's state for one sequence, in elements.
type LayerState struct {
	PerToken int64 // of each token in the KV cache
	Window   int64 // maximum number of tokens in the KV cache; 0 = unlimited
	Fixed    int64 // of the sequence, whatever its length
}

// Elements returns the size of the layer's state for a sequence of that many tokens.
func (l LayerState) Elements(tokens int64) int64 {
	if l.Window > 0 {
		tokens = min(tokens, l.Window)
	}
	return l.Fixed + l.PerToken*tokens
}

// StateElements returns the size of a model's state for a sequence of that many tokens, over all layers. It is 0 if the
// model does not report its state.
func StateElements(m Model, tokens int64) (n int64) {
	s, ok := m.(interface{ State() []LayerState })
	if !ok {
		return 0
	}
	for _, l := range s.State() {
		n += l.Elements(tokens)
	}
	return n
}

// kvStates returns the states of layers with a KV cache. Layers for which slides is true cache a window.
func kvStates(layers, kvHeads, headDim, window int, slides func(i int) bool) []LayerState {
	list := make([]LayerState, layers)
	for i := range list {
		list[i].PerToken = 2 * int64(kvHeads) * int64(headDim)
		if slides != nil && slides(i) {
			list[i].Window = int64(window)
		}
	}
	return list
}

// State returns the state size of each layer.
func (m *Llama) State() []LayerState {
	return kvStates(m.Layers, m.KVHeads, m.HeadDim, m.Window, func(int) bool { return m.Window > 0 })
}

// State returns the state size of each layer.
func (m *Qwen3) State() []LayerState {
	return kvStates(m.Layers, m.KVHeads, m.HeadDim, m.Window, func(i int) bool { return m.Window > 0 && m.Sliding[i] })
}

// State returns the state size of each layer.
func (m *Qwen3Moe) State() []LayerState {
	return kvStates(m.Layers, m.KVHeads, m.HeadDim, m.Window, func(int) bool { return m.Window > 0 })
}

// State returns the state size of each layer.
func (m *Gemma3) State() []LayerState {
	return kvStates(m.Layers, m.KVHeads, m.HeadDim, m.Window, func(i int) bool { return m.Sliding[i] })
}

// State returns the state size of each layer. It is zero for layers that attend to another layer's keys and values.
func (m *Gemma4) State() []LayerState {
	list := make([]LayerState, len(m.Layer))
	for i, l := range m.Layer {
		if m.Shared(i) {
			continue
		}
		list[i].PerToken = 2 * int64(l.KVHeads) * int64(l.HeadDim)
		if l.Sliding {
			list[i].Window = int64(m.Window)
		}
	}
	return list
}

// State returns the state size of each layer. The cache holds latents; their first channels serve as values.
func (m *Glm4MoeLite) State() []LayerState {
	list := make([]LayerState, m.Layers)
	for i := range list {
		list[i].PerToken = int64(m.KVRank + m.RopeDim)
	}
	return list
}

// State returns the state size of each layer. A gated delta layer has a float32 state, counted as two 16-bit elements
// each, and the inputs of its convolution.
func (m *Qwen35) State() []LayerState {
	list := kvStates(m.Layers, m.KVHeads, m.HeadDim, 0, nil)
	d := m.Delta
	for i := range list {
		if !m.Full[i] {
			state := int64(d.ValueHeads) * int64(d.ValueDim) * int64(d.KeyDim)
			list[i] = LayerState{Fixed: 2*state + int64(d.Kernel-1)*int64(2*d.Keys()+d.Values())}
		}
	}
	return list
}
