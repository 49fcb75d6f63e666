// Package glm4_moe_lite runs model type "glm4_moe_lite" (GLM-4.7-Flash): decoder layers of multi-head latent attention
// and of experts that a sigmoid router chooses, with shared experts for all tokens.
//
// Reference: transformers 5.23, models/glm4_moe_lite/modeling_glm4_moe_lite.py.
package glm4_moe_lite

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("glm4_moe_lite", build) }

func build(t *mlx.Thread, c *arch.Glm4MoeLite, w *nn.Weights) *nn.Decoder {
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.Prefix + "norm")})
	rope := nn.NewRope(t, w, c.Rope, c.RopeDim)
	if c.Interleaved {
		rope.Neighbours()
	}
	for i := range c.Layers {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm:   norm(p + "input_layernorm"),
			Mixer:       newLatentAttention(w, p+"self_attn", i, c, rope),
			NetworkNorm: norm(p + "post_attention_layernorm"),
			Network:     network(w, p+"mlp", c, i),
		})
	}
	return m
}

func network(w *nn.Weights, name string, c *arch.Glm4MoeLite, layer int) nn.Network {
	if c.Sparse[layer] {
		return newSparse(w, name, c)
	}
	return nn.NewMLP(w, name, c.Hidden, c.Intermediate, c.MLPBias, mlx.SiLUActivation)
}

// sparse is a layer's router and experts.
type sparse struct {
	router  *router
	experts *nn.Experts
	shared  *nn.MLP // nil if there is none
}

func newSparse(w *nn.Weights, name string, c *arch.Glm4MoeLite) *sparse {
	s := &sparse{
		router:  newRouter(w, name+".gate", c),
		experts: nn.NewExperts(w, name+".experts", c.Experts, c.Hidden),
	}
	if c.SharedExperts > 0 {
		width := c.SharedExperts * c.Experts.Intermediate
		s.shared = nn.NewMLP(w, name+".shared_experts", c.Hidden, width, false, mlx.SiLUActivation)
	}
	return s
}

// AddApply implements nn.Network.
func (s *sparse) AddApply(n *nn.Norm, x, y *mlx.Array) (sum, out *mlx.Array) {
	sum, x = n.AddApply(x, y)
	weights, chosen := s.router.route(x)
	var shared nn.Shared
	if s.shared != nil {
		shared.X = s.shared.Apply(x)
	}
	return sum, s.experts.Apply(x, weights, chosen, shared)
}
