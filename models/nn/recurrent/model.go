package recurrent

import (
	"fmt"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/models/nn"
)

// Scans returns a function that makes the selective scans of layers. Their tensors have a name below the layer's.
func Scans(
	w *nn.Weights, name string, of config.SSM, hidden int, eps float64,
) func(prefix string, layer int) nn.Mixer {
	return func(prefix string, layer int) nn.Mixer { return NewSSM(w, prefix+name, layer, of, hidden, eps) }
}

// ChannelScans is Scans of channels.
func ChannelScans(
	w *nn.Weights, name string, of config.ChannelSSM, hidden int, eps float64,
) func(prefix string, layer int) nn.Mixer {
	return func(prefix string, layer int) nn.Mixer { return NewChannelSSM(w, prefix+name, layer, of, hidden, eps) }
}

// NewModel makes a model whose layers are a mixer each, after an RMSNorm, without a network.
func NewModel(
	w *nn.Weights, c config.Common, states []config.LayerState, mixer func(prefix string, layer int) nn.Mixer,
) *nn.Decoder {
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps) }
	m := nn.NewDecoder(w, c, states, nn.DecoderOptions{Norm: norm(c.LastNorm())})
	for i := range c.Layers {
		prefix := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.Blocks = append(m.Blocks, nn.Block{MixerNorm: norm(prefix + "norm"), Mixer: mixer(prefix, i)})
	}
	return m
}
