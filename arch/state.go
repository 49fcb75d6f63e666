package arch

// LayerState is what a layer keeps of a sequence, in elements.
type LayerState struct {
	PerToken int64 // of each token that it keeps
	Window   int64 // most tokens that it keeps; 0 = all
	Fixed    int64 // of the whole sequence, however long
}

// Elements is how much the layer keeps of a sequence of so many tokens.
func (l LayerState) Elements(tokens int64) int64 {
	if l.Window > 0 {
		tokens = min(tokens, l.Window)
	}
	return l.Fixed + l.PerToken*tokens
}

// StateElements is how much all layers of a model keep of a sequence of so many tokens; 0 for a kind of model that cannot tell.
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

// attends are layers of keys and values, of which those that slide keep a window.
func attends(layers, kvHeads, headDim, window int, slides func(i int) bool) []LayerState {
	list := make([]LayerState, layers)
	for i := range list {
		list[i].PerToken = 2 * int64(kvHeads) * int64(headDim)
		if slides != nil && slides(i) {
			list[i].Window = int64(window)
		}
	}
	return list
}

// State is what the layers keep of a sequence.
func (m *Llama) State() []LayerState {
	return attends(m.Layers, m.KVHeads, m.HeadDim, m.Window, func(int) bool { return m.Window > 0 })
}

// State is what the layers keep of a sequence.
func (m *Qwen3) State() []LayerState {
	return attends(m.Layers, m.KVHeads, m.HeadDim, m.Window, func(i int) bool { return m.Window > 0 && m.Sliding[i] })
}

// State is what the layers keep of a sequence.
func (m *Qwen3Moe) State() []LayerState {
	return attends(m.Layers, m.KVHeads, m.HeadDim, m.Window, func(int) bool { return m.Window > 0 })
}

// State is what the layers keep of a sequence.
func (m *Gemma3) State() []LayerState {
	return attends(m.Layers, m.KVHeads, m.HeadDim, m.Window, func(i int) bool { return m.Sliding[i] })
}

// State is what the layers keep of a sequence: nothing where they attend another layer's.
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

// State is what the layers keep of a sequence: latents, whose first channels are the values.
func (m *Glm4MoeLite) State() []LayerState {
	list := make([]LayerState, m.Layers)
	for i := range list {
		list[i].PerToken = int64(m.KVRank + m.RopeDim)
	}
	return list
}

// State is what the layers keep of a sequence: those that are no full attention a state of float32, which is two elements of others.
func (m *Qwen35) State() []LayerState {
	list := attends(m.Layers, m.KVHeads, m.HeadDim, 0, nil)
	d := m.Delta
	for i := range list {
		if !m.Full[i] {
			list[i] = LayerState{Fixed: 2*int64(d.ValueHeads)*int64(d.ValueDim)*int64(d.KeyDim) + int64(d.Kernel-1)*int64(2*d.Keys()+d.Values())}
		}
	}
	return list
}
