// Package recurrent_gemma runs model type "recurrent_gemma": layers of a gated linear recurrence (RG-LRU) or of
// attention with a sliding window, each with a gated MLP. Norms scale by 1 + weight.
//
// Reference: transformers 5.23, models/recurrent_gemma/modeling_recurrent_gemma.py.
package recurrent_gemma

import (
	"fmt"
	"math"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("recurrent_gemma", build) }

func build(t *mlx.Thread, c *types.RecurrentGemma, w *nn.Weights) *nn.Decoder {
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps).PlusOne() }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{
		Norm:           norm(c.LastNorm()),
		EmbeddingScale: bfloat16(math.Sqrt(float64(c.Hidden))),
		LogitCap:       c.SoftCap,
	})
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim)
	for i, state := range c.State() {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		var mixer nn.Mixer
		if c.Full[i] {
			mixer = nn.NewAttention(w, p+"temporal_block", i, c.Common, nn.AttentionOptions{
				Rope: rope, Window: int(state.Window),
			})
		} else {
			mixer = newRecurrence(w, p+"temporal_block", i, c)
		}
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm:   norm(p + "temporal_pre_norm"),
			Mixer:       mixer,
			NetworkNorm: norm(p + "channel_pre_norm"),
			Network:     nn.NewMLP(w, p+"mlp_block", c.Hidden, c.Intermediate, c.MLPBias, mlx.GELUTanhActivation),
		})
	}
	return m
}

// bfloat16 rounds to the nearest bfloat16, as the reference does whatever the type of weights is.
func bfloat16(v float64) float64 {
	bits := math.Float32bits(float32(v))
	bits += 0x7fff + bits>>16&1
	return float64(math.Float32frombits(bits &^ 0xffff))
}
