// Package qwen3_5 runs model type "qwen3_5": decoder layers with a SwiGLU MLP, most with Gated DeltaNet and some with
// full attention whose output is gated. Optional parts of a checkpoint are a multi-token prediction head and a vision
// tower.
//
// Reference: transformers 5.23, models/qwen3_5/modeling_qwen3_5.py.
package qwen3_5

import (
	"fmt"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/nn/recurrent"
)

func init() {
	models.Register("qwen3_5", func(t *mlx.Thread, c *types.Qwen35, w *nn.Weights) *Model {
		return New(t, c, w, func(name string, _ int) nn.Network {
			return nn.NewMLP(w, name, c.Hidden, c.Intermediate, c.MLPBias, mlx.SiLUActivation)
		})
	})
}

// Model is a qwen3_5 model, or a model that differs from it only in its networks.
type Model struct {
	*nn.Decoder
	mtp   *models.Next // nil if the checkpoint has none
	tower *tower       // nil if the checkpoint has none
}

// NetworkBuilder builds the network of a layer from the tensors whose names start with name. The layer is -1 for the
// multi-token prediction head.
type NetworkBuilder func(name string, layer int) nn.Network

// New builds a model with networks from the caller. It takes every tensor of c's tensor table except those of networks.
func New(t *mlx.Thread, c *types.Qwen35, w *nn.Weights, network NetworkBuilder) *Model {
	m := &Model{Decoder: nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: newNorm(w, c.Prefix+"norm", c)})}
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim).Sections(c.Sections, c.Interleaved)
	for i := range c.Layers {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		var mixer nn.Mixer
		if c.Full[i] {
			mixer = newAttention(w, p+"self_attn", i, c, rope)
		} else {
			mixer = recurrent.NewGatedDelta(w, p+"linear_attn", i, c.Delta, c.Hidden, c.NormEps)
		}
		m.Blocks = append(m.Blocks, newBlock(w, p, c, mixer, network(p+"mlp", i)))
	}
	m.tower = newTower(t, w, c.Vision)
	m.mtp = newMTP(w, c, rope, m, network)
	return m
}

func newNorm(w *nn.Weights, name string, c *types.Qwen35) *nn.Norm {
	return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps).PlusOne()
}

func newBlock(w *nn.Weights, p string, c *types.Qwen35, mixer nn.Mixer, network nn.Network) nn.Block {
	return nn.Block{
		MixerNorm:   newNorm(w, p+"input_layernorm", c),
		Mixer:       mixer,
		NetworkNorm: newNorm(w, p+"post_attention_layernorm", c),
		Network:     network,
	}
}
