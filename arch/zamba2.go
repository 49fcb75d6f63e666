package arch

import (
	"fmt"
	"slices"
)

// Zamba2 is the configuration of model type "zamba2": layers of Mamba 2. Before some of them is a transformer block
// whose input is the residual stream beside the embeddings. A few such blocks take turns; each use has adapters of its
// own. Absent keys have the defaults of transformers 5.23; sizes are required. HeadDim is of queries and keys, which
// are twice as wide as the model.
type Zamba2 struct {
	Dense
	SSM      SSM
	Hybrid   []bool // by layer: it has a transformer block
	Blocks   int    // number of transformer blocks
	Rank     int    // of adapters
	Adapters bool   // queries, keys and values have adapters, too
	Rotates  bool   // attention has a rope
}

func init() {
	register(Arch{
		ModelType:     "zamba2",
		Architectures: []string{"Zamba2ForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseZamba2(config) },
		Docs: Docs{
			Variants: "Mamba 2 with one or more shared transformer blocks, adapters of attention, with or without a rope",
		},
	})
}

// ParseZamba2 parses the config.json of a zamba2 model.
func ParseZamba2(config []byte) (*Zamba2, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	d := commonDefaults{
		class: "Zamba2ForCausalLM", ctx: 4096, eps: 1e-5, tied: true, bos: []int32{1}, eos: []int32{2},
	}
	// Heads are of the width of the residual stream and the embeddings together, whatever the configuration says.
	hidden, heads := o.size("hidden_size", 0, maxWidth/2), o.size("num_attention_heads", 0, maxHeads)
	if err := o.failed(); err != nil {
		return nil, err
	}
	o.set("head_dim", 2*hidden/heads)
	m := &Zamba2{Dense: Dense{
		Common:       parseCommon(top, o, d),
		Intermediate: o.integer("intermediate_size", 4*hidden, 1, maxWidth),
		Activation:   o.activation("hidden_act", "gelu"),
	}}
	m.NormName = "final_layernorm"
	m.AttentionBias, m.OutputBias = false, false
	m.MLPBias = o.boolean("add_bias_linear", false)
	m.rope(o, ropeOptions{})
	if o.boolean("use_long_context", false) {
		m.Context = 16384
	}
	m.Rotates = o.boolean("use_mem_rope", false)
	m.Adapters = o.boolean("use_shared_attention_adapter", false)
	m.Rank = o.integer("adapter_rank", 128, 1, maxWidth)
	m.Blocks = o.integer("num_mem_blocks", 1, 1, maxLayers)
	if 2*hidden%heads != 0 {
		o.fail("num_attention_heads", fmt.Sprintf("divide %d, twice the hidden_size", 2*hidden))
	}
	if m.Adapters && m.KVHeads != m.Heads {
		o.fail("num_key_value_heads", "be num_attention_heads: the adapters of keys and values have as many heads")
	}
	m.SSM = parseSSM(o, ssmKeys{
		heads: "n_mamba_heads", dim: "mamba_headdim", groups: "mamba_ngroups", state: "mamba_d_state",
		kernel: "mamba_d_conv", bias: "add_bias_linear", outputBias: "add_bias_linear",
	}, ssmDefaults{heads: 8, groups: 1, state: 64}, o.integer("mamba_expand", 2, 1, 64)*m.Hidden)
	m.SSM.ConvBias = true
	m.SSM.MinStep, m.SSM.MaxStep = o.atLeast("time_step_min", 0.001, 0), 0
	m.parseHybrid(o)
	return parsed(m, o)
}

// parseHybrid reads which layers have a transformer block.
func (m *Zamba2) parseHybrid(o object) {
	const key, hybrid = "layers_block_type", "hybrid"
	kinds := o.kinds(key, m.Layers, linearAttention, mambaLayer, hybrid)
	if kinds == nil {
		o.missing(key)
	}
	m.Hybrid = make([]bool, m.Layers)
	for i, kind := range kinds {
		m.Hybrid[i] = kind == hybrid
	}
	if uses := m.uses(); len(uses) < m.Blocks && len(uses) > 0 {
		o.fail("num_mem_blocks", fmt.Sprintf("be at most %d, the number of hybrid layers", len(uses)))
	}
}

// uses returns the layers with a transformer block, in order.
func (m *Zamba2) uses() []int {
	var list []int
	for i, hybrid := range m.Hybrid {
		if hybrid {
			list = append(list, i)
		}
	}
	return list
}

// Shared returns the prefix of the tensors of the transformer block before layer i, which has one, and the number of
// its adapters. The tensors belong to the first layer that uses the block.
func (m *Zamba2) Shared(i int) (prefix string, adapter int) {
	uses := m.uses()
	adapter = slices.Index(uses, i)
	return m.layer(uses[adapter%m.Blocks]) + "shared_transformer.", adapter
}

// State implements [Model]. Each layer has two states: of its attention, if it has one, and of its scan.
func (m *Zamba2) State() []LayerState {
	var list []LayerState
	for i, attention := range m.kvStates(0, nil) {
		if !m.Hybrid[i] {
			attention = LayerState{}
		}
		list = append(list, attention, m.SSM.state())
	}
	return list
}

// Facts implements [Model].
func (m *Zamba2) Facts() Facts { return m.facts("zamba2", m.Rope, m.Table()) }

// Table implements [Model].
func (m *Zamba2) Table() Table {
	hidden := int64(m.Hidden)
	return m.decoder("zamba2", false, func(t *Table, layer string, i int) {
		if m.Hybrid[i] {
			name, adapter := m.Shared(i)
			own := layer + "shared_transformer."
			if name == own {
				m.shared(t, name)
			} else {
				// Checkpoints may have the block's tensors for each of its uses.
				for _, s := range t.Specs {
					if len(s.Name) > len(name) && s.Name[:len(name)] == name {
						t.drop("the layer shares its transformer block with an earlier one", own+s.Name[len(name):])
						t.Droppable[len(t.Droppable)-1].SameAs = s.Name
					}
				}
			}
			m.adapters(t, name, adapter)
			t.linear(layer+"linear", hidden, hidden, false, replicated)
			layer += "mamba_decoder."
		}
		t.norm(layer+"input_layernorm", hidden, false)
		t.ssm(layer+"mamba", m.SSM, hidden)
	})
}

// shared adds a transformer block.
func (m *Zamba2) shared(t *Table, name string) {
	hidden, wide := int64(m.Hidden), int64(m.Intermediate)
	kv := int64(m.KVHeads) * int64(m.HeadDim)
	by, keys := queryRows(m.Heads, m.KVHeads), keyRows(m.Heads, m.KVHeads)
	t.norm(name+"input_layernorm", 2*hidden, false)
	t.linear(name+"self_attn.q_proj", m.queries(), 2*hidden, false, by)
	t.linear(name+"self_attn.k_proj", kv, 2*hidden, false, keys)
	t.linear(name+"self_attn.v_proj", kv, 2*hidden, false, keys)
	t.linear(name+"self_attn.o_proj", hidden, m.queries(), false, queryColumns(m.Heads, m.KVHeads))
	t.norm(name+"pre_ff_layernorm", hidden, false)
	// Ranks have all of the block: its projections of gate and input are one tensor, whose adapters are small.
	t.linear(name+"feed_forward.gate_up_proj", 2*wide, hidden, m.MLPBias, replicated)
	t.linear(name+"feed_forward.down_proj", hidden, wide, m.MLPBias, replicated)
}

// adapters adds the adapters of a use of a transformer block. Ranks have what gives the outputs of their heads.
func (m *Zamba2) adapters(t *Table, name string, number int) {
	add := func(of string, out, in int64, by Split) {
		prefix := fmt.Sprintf("%s%s_adapter_list.%d.", name, of, number)
		t.linear(prefix+"0", int64(m.Rank), in, false, replicated)
		t.linear(prefix+"1", out, int64(m.Rank), false, by)
	}
	if m.Adapters {
		keys := keyRows(m.Heads, m.KVHeads)
		add("self_attn.linear_q", m.queries(), 2*int64(m.Hidden), queryRows(m.Heads, m.KVHeads))
		add("self_attn.linear_k", m.queries(), 2*int64(m.Hidden), keys)
		add("self_attn.linear_v", m.queries(), 2*int64(m.Hidden), keys)
	}
	add("feed_forward.gate_up_proj", 2*int64(m.Intermediate), int64(m.Hidden), replicated)
}
