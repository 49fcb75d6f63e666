package config

import (
	"encoding/json"
)

// FullLayers reads which of the layers are attention; the others are recurrent. ok is false if the key is absent.
func (o Object) FullLayers(key string, layers int) (full []bool, ok bool) {
	kinds := o.Words(key, layers, LinearAttention, FullAttention, MambaLayer, AttentionLayer)
	full = make([]bool, layers)
	for i, kind := range kinds {
		full[i] = kind == FullAttention || kind == AttentionLayer
	}
	return full, kinds != nil
}

// HybridStates returns the states of layers of which some are attention, and the others have the given state.
func (c Common) HybridStates(full []bool, recurrent LayerState) []LayerState {
	list := c.KVStates(0, nil)
	for i := range list {
		if !full[i] {
			list[i] = recurrent
		}
	}
	return list
}

// Set gives a key a value, such as one that other keys imply.
func (o Object) Set(key string, value any) {
	if b, err := json.Marshal(value); err == nil {
		o.Keys[key] = b
	}
}
