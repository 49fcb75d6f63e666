package types

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// HunYuanMoe is the configuration of model type "hunyuan_v1_moe" (Hunyuan A13B): [HunYuanDense] with experts and a
// shared expert in every layer. Absent keys have the defaults of transformers 5.23; sizes are required.
type HunYuanMoe struct {
	config.Dense
	Mixture config.Mixture
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "hunyuan_v1_moe",
		Plain:         true,
		Architectures: []string{"HunYuanMoEV1ForCausalLM"},
		GGUF:          []gguf.Map{ggufHunYuanMoe},
		Published: table.Published{
			Experts:     table.PerExpert,
			HuggingFace: hunYuanNames,
			MLX:         hunYuanNames,
		},
		Docs: arch.Docs{
			Variants: "norms after rope, rope with `alpha`, numbers of experts per layer, biases, tied embeddings",
			Rules:    "generic, also for experts",
		},
	}, ParseHunYuanMoe)
}

// ParseHunYuanMoe parses the config.json of a hunyuan_v1_moe model.
func ParseHunYuanMoe(data []byte) (*HunYuanMoe, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	o = uniform(o, "num_experts", "moe_topk")
	d := config.Defaults{Class: "HunYuanMoEV1ForCausalLM", Context: 2048, NormEps: 1e-5, BOS: []int32{1}, EOS: []int32{2}}
	m := &HunYuanMoe{Dense: config.ParseDecoder(top, o, d, config.RopeOptions{})}
	m.Rope = alphaRope(o, m.Rope, m.HeadDim)
	x := &m.Mixture
	x.ReadExperts(o, m.Common, config.MixtureDefaults{Count: 1, PerToken: 1}, "intermediate_size")
	x.Experts.NormTopK, x.Router.Float32, x.Shared = true, true, x.Experts.Intermediate
	return config.Done(m, o)
}

// uniform replaces lists of one number per layer by the number. It must be the same for all layers.
func uniform(o config.Object, keys ...string) config.Object {
	o.Keys = maps.Clone(o.Keys)
	for _, key := range keys {
		var list []json.RawMessage
		if json.Unmarshal(o.Keys[key], &list) != nil || len(list) == 0 {
			continue
		}
		for i, each := range list {
			if string(each) != string(list[0]) {
				o.Fail(key, fmt.Sprintf("be the same for all layers (layer %d has another than layer 0)", i))
				break
			}
		}
		o.Keys[key] = list[0]
	}
	return o
}

func (m *HunYuanMoe) Facts() config.Facts { return m.FactsAs("hunyuan_v1_moe", m.Rope, m.Table()) }

func (m *HunYuanMoe) Table() table.Table {
	t := m.Decoder().Table("hunyuan_v1_moe")
	t.Also([]string{".mlp.gate.", ".mlp.gate.wg.", ".mlp.shared_experts.", ".mlp.shared_mlp."})
	return t
}

func (m *HunYuanMoe) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Mixture: &m.Mixture, Description: decoder.Description{
		HeadNorms: decoder.HeadNorms{Q: "query_layernorm", K: "key_layernorm", AfterRope: true},
	}}
}

// ggufHunYuanMoe is the mapping of hunyuan_v1_moe.
var ggufHunYuanMoe = hunYuanMoe()

func hunYuanMoe() gguf.Map {
	g := hunYuan("hunyuan-moe", "hunyuan_v1_moe", "HunYuanMoEV1ForCausalLM",
		gguf.Key{Key: "expert_count", To: "num_experts", Field: "Experts.Count"},
		gguf.Key{Key: "expert_used_count", To: "moe_topk", Field: "Experts.PerToken"})
	g.Tensors = slices.Concat(g.Tensors, gguf.MoE, gguf.SharedExperts)
	return g
}

// hunYuanNames are the published names of tensors, after those of the table.
var hunYuanNames = []string{".mlp.gate.", ".mlp.gate.wg.", ".mlp.shared_experts.", ".mlp.shared_mlp."}
