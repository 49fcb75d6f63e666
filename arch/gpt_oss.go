package arch

import (
	"encoding/json"

	"github.com/ingotml/ingot/arch/decoder"
)

// GptOss is the configuration of model type "gpt_oss": experts with biases and a clamped activation in every layer,
// attention with sinks, and sliding windows in some layers. Absent keys have the defaults of transformers 5.23; sizes
// are required.
type GptOss struct {
	Dense
	Mixture Mixture
}

func init() {
	register(Arch{
		ModelType:     "gpt_oss",
		Plain:         true,
		Architectures: []string{"GptOssForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseGptOss(config) },
		Chat:          &Chat{Marks: []string{"gptoss", "gpt_oss"}, Parser: "harmony", Renderer: "harmony", Thinks: true},
		GGUF:          []GGUF{ggufGptOss},
		Docs: Docs{
			Variants: "experts as published, in mxfp4, whose codes are kept; in columns, or stacked; sliding windows by layer",
			Rules:    "generic, also for experts",
		},
	})
}

// gptOssRope are the rope parameters of a configuration without any.
const gptOssRope = `{"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": false,
	"original_max_position_embeddings": 4096}`

// ParseGptOss parses the config.json of a gpt_oss model.
func ParseGptOss(config []byte) (*GptOss, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	if !o.has("rope_scaling") && !o.has("rope_parameters") {
		o.raw["rope_parameters"] = json.RawMessage(gptOssRope)
	}
	d := commonDefaults{class: "GptOssForCausalLM", kv: 8, dim: 64, ctx: 1 << 17, eps: 1e-5}
	m := &GptOss{Dense: parseDecoder(top, o, d, ropeOptions{theta: 150000})}
	m.AttentionBias = o.boolean("attention_bias", true)
	m.OutputBias = m.AttentionBias
	x := &m.Mixture
	x.parseExperts(o, m.Common, mixtureDefaults{count: 128, perToken: 4}, "intermediate_size")
	// The weights are a softmax over the scores of the chosen experts.
	x.Router = Router{Name: "router", Bias: true}
	x.Experts.NormTopK, x.Experts.Bias = true, true
	x.Experts.Clamp = Clamp{Alpha: o.above("swiglu_alpha", 1.702, 0), Limit: o.above("swiglu_limit", 7, 0)}
	kinds := o.kinds("layer_types", m.Layers, fullAttention, slidingAttention)
	sliding := slidingOf(kinds)
	if kinds == nil {
		sliding = everyOther(m.Layers)
	}
	m.slide(o.window("sliding_window", 128), sliding)
	return parsed(m, o)
}

// everyOther returns layers of which the first slides, the second does not, and so on.
func everyOther(layers int) []bool {
	sliding := make([]bool, layers)
	for i := range sliding {
		sliding[i] = i%2 == 0
	}
	return sliding
}

// Facts implements [Model].
func (m *GptOss) Facts() Facts { return m.facts("gpt_oss", m.Rope, m.Table()) }

// Table implements [Model].
func (m *GptOss) Table() Table {
	return m.decodes("gpt_oss", m.Mixture, func(t *Table, name string) {
		t.add(name+".sinks", queryRows(m.Heads, m.KVHeads), int64(m.Heads))
	})
}

// biasedExperts adds experts with biases: base.gate_up_proj.weight [experts, 2*intermediate, hidden] and .bias, each
// expert's gate before its up projection, and base.down_proj.weight [experts, hidden, intermediate] and .bias.
// transformers has the matrices transposed, under names without .weight. The published files have codes and scales of
// mxfp4, which are read as one tensor. In both, the outputs of gate and up come in turns. mlx-lm has them apart.
func (t *Table) biasedExperts(base string, e Experts, hidden int) {
	n, width, h := int64(e.Count), int64(e.Intermediate), int64(hidden)
	add := func(name string, shape []int64, forms ...Form) {
		s := t.add(base+name, byExpert, shape...)
		s.Layout, s.Forms = inRows, forms
		for i := range s.Forms {
			f := &s.Forms[i]
			for j := range f.Names {
				f.Names[j] = base + f.Names[j]
			}
			if f.Count == 0 {
				f.Count = 1
			}
		}
	}
	gathered := func(layout, name string, size int64, shape ...int64) Form {
		return Form{
			Layout: layout, Make: Gather, Names: []string{name}, Shapes: [][]int64{shape}, Runs: inTurns(n, width, size),
		}
	}
	whole := func(layout, name string, shape ...int64) Form {
		return Form{Layout: layout, Make: Copy, Names: []string{name}, Shapes: [][]int64{shape}}
	}
	apart := func(end string, shape ...int64) Form {
		return Form{
			Layout: stacked, Make: Interleave, Count: n,
			Names: []string{".gate_proj" + end, ".up_proj" + end}, Shapes: [][]int64{shape, shape},
		}
	}
	columns := gathered(inColumns, ".gate_up_proj", h, n, h, 2*width)
	columns.Transposed = true
	add(".gate_up_proj.weight", []int64{n, 2 * width, h},
		columns, gathered(inBlocks, ".gate_up_proj_blocks", h, n, 2*width, h), apart(".weight", n, width, h))
	add(".gate_up_proj.bias", []int64{n, 2 * width},
		gathered(inColumns, ".gate_up_proj_bias", 1, n, 2*width), gathered(inBlocks, ".gate_up_proj_bias", 1, n, 2*width),
		apart(".bias", n, width))
	columns = whole(inColumns, ".down_proj", n, width, h)
	columns.Transposed = true
	add(".down_proj.weight", []int64{n, h, width}, columns, whole(inBlocks, ".down_proj_blocks", n, h, width))
	add(".down_proj.bias", []int64{n, h},
		whole(inColumns, ".down_proj_bias", n, h), whole(inBlocks, ".down_proj_bias", n, h))
}

// inTurns are the elements of gates and then of up projections of each of n experts, of rows that are one and the other
// in turns.
func inTurns(n, rows, size int64) []Run {
	var runs []Run
	for e := range n {
		begin := e * 2 * rows * size
		runs = append(runs,
			Run{Begin: begin, Count: size, Step: 2 * size, Times: rows},
			Run{Begin: begin + size, Count: size, Step: 2 * size, Times: rows})
	}
	return runs
}

// Decoder implements [Described].
func (m *GptOss) Decoder() Decoder {
	return Decoder{
		Dense:       &m.Dense,
		Mixture:     &m.Mixture,
		Description: decoder.Description{Sinks: everyLayer(m.Layers)},
	}
}
