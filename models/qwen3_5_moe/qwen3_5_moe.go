// Package qwen3_5_moe runs model type "qwen3_5_moe" and its predecessor "qwen3_next": qwen3_5 with routed experts
// instead of the MLP, and a shared expert for all rows.
//
// Reference: transformers 5.23, models/qwen3_5_moe/modeling_qwen3_5_moe.py.
package qwen3_5_moe

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/qwen3_5"
)

func init() {
	models.Register("qwen3_5_moe", func(t *mlx.Thread, config arch.Model, w *nn.Weights) models.Model {
		c := config.(*arch.Qwen35Moe)
		return qwen3_5.New(t, &c.Qwen35, w, func(name string, layer int) qwen3_5.Network {
			return network(w, name, c, layer)
		})
	})
}

func network(w *nn.Weights, name string, c *arch.Qwen35Moe, layer int) qwen3_5.Network {
	if !c.HasExperts(layer) {
		return nn.NewMLP(w, name, c.Hidden, c.Intermediate, false, mlx.SiLUActivation)
	}
	s := &sparse{
		router:   nn.NewLinear(w, name+".gate", c.Experts.Count, c.Hidden, false),
		experts:  nn.NewExperts(w, name+".experts", c.Experts, c.Hidden),
		perToken: c.Experts.PerToken,
		sumToOne: c.Experts.NormTopK,
	}
	if width := c.SharedIntermediate; width > 0 {
		shared := name + ".shared_expert"
		s.shared = &sharedExpert{
			gate:  nn.NewLinear(w, shared+".gate_proj", width, c.Hidden, false),
			up:    nn.NewLinear(w, shared+".up_proj", width, c.Hidden, false),
			down:  nn.NewLinear(w, shared+".down_proj", c.Hidden, width, false),
			share: nn.NewLinear(w, name+".shared_expert_gate", 1, c.Hidden, false),
		}
	}
	return s
}

// sparse is a layer's router and experts.
type sparse struct {
	router   *nn.Linear // [experts, hidden]
	experts  *nn.Experts
	perToken int
	sumToOne bool
	shared   *sharedExpert // nil if there is none
}

// sharedExpert is an MLP whose output is multiplied by the sigmoid of a score.
type sharedExpert struct {
	gate, up, down, share *nn.Linear
}

// AddApply implements qwen3_5.Network.
func (s *sparse) AddApply(n *nn.RMSNorm, x, y *mlx.Array) (sum, out *mlx.Array) {
	layers := []*nn.Linear{s.router}
	if s.shared != nil {
		layers = append(layers, s.shared.gate, s.shared.up, s.shared.share)
	}
	sum, x, in := nn.NormedLinearsKept(n, x, y, layers...) // the experts also read the normalized sum
	var all nn.Shared
	if s.shared != nil {
		all = nn.Shared{X: s.shared.down.ApplyGated(mlx.SiLUActivation, in[1], in[2]), Gate: in[3]}
	}
	weights, chosen := nn.TopSoftmax(in[0], s.perToken, s.sumToOne)
	return sum, s.experts.Apply(x, weights, chosen, all)
}
