package arch

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/ingotml/ingot/arch/decoder"
)

// HunYuanMoe is the configuration of model type "hunyuan_v1_moe" (Hunyuan A13B): [HunYuanDense] with experts and a
// shared expert in every layer. Absent keys have the defaults of transformers 5.23; sizes are required.
type HunYuanMoe struct {
	Dense
	Mixture Mixture
}

func init() {
	register(Arch{
		ModelType:     "hunyuan_v1_moe",
		Plain:         true,
		Architectures: []string{"HunYuanMoEV1ForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseHunYuanMoe(config) },
		GGUF:          []GGUF{ggufHunYuanMoe},
		Docs: Docs{
			Variants: "norms after rope, rope with `alpha`, numbers of experts per layer, biases, tied embeddings",
			Rules:    "generic, also for experts",
		},
	})
}

// ParseHunYuanMoe parses the config.json of a hunyuan_v1_moe model.
func ParseHunYuanMoe(config []byte) (*HunYuanMoe, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	o = uniform(o, "num_experts", "moe_topk")
	d := commonDefaults{class: "HunYuanMoEV1ForCausalLM", ctx: 2048, eps: 1e-5, bos: []int32{1}, eos: []int32{2}}
	m := &HunYuanMoe{Dense: parseDecoder(top, o, d, ropeOptions{})}
	m.Rope = alphaRope(o, m.Rope, m.HeadDim)
	x := &m.Mixture
	x.parseExperts(o, m.Common, mixtureDefaults{count: 1, perToken: 1}, "intermediate_size")
	x.Experts.NormTopK, x.Router.Float32, x.Shared = true, true, x.Experts.Intermediate
	return parsed(m, o)
}

// uniform replaces lists of one number per layer by the number. It must be the same for all layers.
func uniform(o object, keys ...string) object {
	o.raw = maps.Clone(o.raw)
	for _, key := range keys {
		var list []json.RawMessage
		if json.Unmarshal(o.raw[key], &list) != nil || len(list) == 0 {
			continue
		}
		for i, each := range list {
			if string(each) != string(list[0]) {
				o.fail(key, fmt.Sprintf("be the same for all layers (layer %d has another than layer 0)", i))
				break
			}
		}
		o.raw[key] = list[0]
	}
	return o
}

// Facts implements [Model].
func (m *HunYuanMoe) Facts() Facts { return m.facts("hunyuan_v1_moe", m.Rope, m.Table()) }

// Table implements [Model].
func (m *HunYuanMoe) Table() Table {
	t := m.decodes("hunyuan_v1_moe", m.Mixture, func(t *Table, name string) {
		t.norm(name+".query_layernorm", int64(m.HeadDim), false)
		t.norm(name+".key_layernorm", int64(m.HeadDim), false)
	})
	t.also([]string{".mlp.gate.", ".mlp.gate.wg.", ".mlp.shared_experts.", ".mlp.shared_mlp."})
	return t
}

// Decoder implements [Described].
func (m *HunYuanMoe) Decoder() Decoder {
	return Decoder{Dense: &m.Dense, Mixture: &m.Mixture, Description: decoder.Description{
		HeadNorms: decoder.HeadNorms{Q: "query_layernorm", K: "key_layernorm", AfterRope: true},
	}}
}
