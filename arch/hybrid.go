package arch

import "encoding/json"

// Types of layers in configurations of hybrid models; see also fullAttention and linearAttention.
const (
	mambaLayer     = "mamba"
	attentionLayer = "attention"
)

// hybrid reads which of the layers are attention; the others are recurrent. ok is false if the key is absent.
func (o object) hybrid(key string, layers int) (full []bool, ok bool) {
	kinds := o.kinds(key, layers, linearAttention, fullAttention, mambaLayer, attentionLayer)
	full = make([]bool, layers)
	for i, kind := range kinds {
		full[i] = kind == fullAttention || kind == attentionLayer
	}
	return full, kinds != nil
}

// hybridStates returns the states of layers of which some are attention, and the others have the given state.
func (c Common) hybridStates(full []bool, recurrent LayerState) []LayerState {
	list := c.kvStates(0, nil)
	for i := range list {
		if !full[i] {
			list[i] = recurrent
		}
	}
	return list
}

// set gives a key a value, such as one that other keys imply.
func (o object) set(key string, value any) {
	if b, err := json.Marshal(value); err == nil {
		o.raw[key] = b
	}
}
