package config

import (
	"github.com/ingotml/ingot/arch/decoder"
)

// Decoder is a model as data: what all decoders have, its experts, and its differences from Llama.
type Decoder struct {
	*Dense
	Mixture     *Mixture // nil = no layer has experts
	SlidingRope *Rope    // of sliding layers; nil = they have that of the others
	decoder.Description
}

// SlidingLayers returns which layers slide.
func (m *Dense) SlidingLayers() []bool {
	if m.Window == 0 {
		return make([]bool, m.Layers)
	}
	return m.Sliding
}

// EveryLayer returns a list that is true for each layer.
func EveryLayer(layers int) []bool {
	all := make([]bool, layers)
	for i := range all {
		all[i] = true
	}
	return all
}
