package types

import (
	"fmt"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/table"
)

// Zamba2 is the configuration of model type "zamba2": layers of Mamba 2. Before some of them is a transformer block
// whose input is the residual stream beside the embeddings. A few such blocks take turns; each use has adapters of its
// own. Absent keys have the defaults of transformers 5.23; sizes are required. HeadDim is of queries and keys, which
// are twice as wide as the model.
type Zamba2 struct {
	config.Dense
	SSM      config.SSM
	Hybrid   []bool // by layer: it has a transformer block
	Blocks   int    // number of transformer blocks
	Rank     int    // of adapters
	Adapters bool   // queries, keys and values have adapters, too
	Rotates  bool   // attention has a rope
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "zamba2",
		Architectures: []string{"Zamba2ForCausalLM"},
		Idle: []arch.Idle{
			{Why: "the largest initial time step", Keys: []string{"mamba_dt_max", "time_step_max"}},
			{Why: "the tensors say it by their names and shapes",
				Keys: []string{"attention_head_dim", "attention_hidden_size", "head_dim", "hybrid_layer_ids", "use_conv_bias"}},
		},
		Docs: arch.Docs{
			Variants: "Mamba 2 with one or more shared transformer blocks, adapters of attention, with or without a rope",
		},
	}, ParseZamba2)
}

// ParseZamba2 parses the config.json of a zamba2 model.
func ParseZamba2(data []byte) (*Zamba2, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	d := config.Defaults{
		Class: "Zamba2ForCausalLM", Context: 4096, NormEps: 1e-5, Tied: true, BOS: []int32{1}, EOS: []int32{2},
	}
	// Heads are of the width of the residual stream and the embeddings together, whatever the configuration says.
	hidden, heads := o.Size("hidden_size", 0, config.MaxWidth/2), o.Size("num_attention_heads", 0, config.MaxHeads)
	if err := o.Failed(); err != nil {
		return nil, err
	}
	o.Set("head_dim", 2*hidden/heads)
	m := &Zamba2{Dense: config.Dense{
		Common:       config.ParseCommon(top, o, d),
		Intermediate: o.Integer("intermediate_size", 4*hidden, 1, config.MaxWidth),
		Activation:   o.Activation("hidden_act", "gelu"),
	}}
	m.NormName = "final_layernorm"
	m.AttentionBias, m.OutputBias = false, false
	m.MLPBias = o.Bool("add_bias_linear", false)
	m.ReadRope(o, config.RopeOptions{})
	if o.Bool("use_long_context", false) {
		m.Context = 16384
	}
	m.Rotates = o.Bool("use_mem_rope", false)
	m.Adapters = o.Bool("use_shared_attention_adapter", false)
	m.Rank = o.Integer("adapter_rank", 128, 1, config.MaxWidth)
	m.Blocks = o.Integer("num_mem_blocks", 1, 1, config.MaxLayers)
	if 2*hidden%heads != 0 {
		o.Fail("num_attention_heads", fmt.Sprintf("divide %d, twice the hidden_size", 2*hidden))
	}
	if m.Adapters && m.KVHeads != m.Heads {
		o.Fail("num_key_value_heads", "be num_attention_heads: the adapters of keys and values have as many heads")
	}
	m.SSM = config.ParseSSM(o, config.SSMKeys{
		Heads: "n_mamba_heads", Dim: "mamba_headdim", Groups: "mamba_ngroups", State: "mamba_d_state",
		Kernel: "mamba_d_conv", Bias: "add_bias_linear", OutputBias: "add_bias_linear",
	}, config.SSMDefaults{Heads: 8, Groups: 1, State: 64}, o.Integer("mamba_expand", 2, 1, 64)*m.Hidden)
	m.SSM.ConvBias = true
	m.SSM.MinStep, m.SSM.MaxStep = o.AtLeast("time_step_min", 0.001, 0), 0
	m.parseHybrid(o)
	return config.Done(m, o)
}

// parseHybrid reads which layers have a transformer block.
func (m *Zamba2) parseHybrid(o config.Object) {
	const key, hybrid = "layers_block_type", "hybrid"
	kinds := o.Words(key, m.Layers, config.LinearAttention, config.MambaLayer, hybrid)
	if kinds == nil {
		o.Missing(key)
	}
	m.Hybrid = make([]bool, m.Layers)
	for i, kind := range kinds {
		m.Hybrid[i] = kind == hybrid
	}
	if uses := m.uses(); len(uses) < m.Blocks && len(uses) > 0 {
		o.Fail("num_mem_blocks", fmt.Sprintf("be at most %d, the number of hybrid layers", len(uses)))
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
	return m.LayerName(uses[adapter%m.Blocks]) + "shared_transformer.", adapter
}

// State implements [arch.Model]. Each layer has two states: of its attention, if it has one, and of its scan.
func (m *Zamba2) State() []config.LayerState {
	var list []config.LayerState
	for i, attention := range m.KVStates(0, nil) {
		if !m.Hybrid[i] {
			attention = config.LayerState{}
		}
		list = append(list, attention, m.SSM.LayerState())
	}
	return list
}

func (m *Zamba2) Facts() config.Facts { return m.FactsAs("zamba2", m.Rope, m.Table()) }

func (m *Zamba2) Table() table.Table {
	hidden := int64(m.Hidden)
	return m.TableOf("zamba2", false, func(t *table.Table, layer string, i int) {
		if m.Hybrid[i] {
			name, adapter := m.Shared(i)
			own := layer + "shared_transformer."
			if name == own {
				m.shared(t, name)
			} else {
				// Checkpoints may have the block's tensors for each of its uses.
				for _, s := range t.Specs {
					if len(s.Name) > len(name) && s.Name[:len(name)] == name {
						t.Drop("the layer shares its transformer block with an earlier one", own+s.Name[len(name):])
						t.Droppable[len(t.Droppable)-1].SameAs = s.Name
					}
				}
			}
			m.adapters(t, name, adapter)
			t.Linear(layer+"linear", hidden, hidden, false, table.Whole)
			layer += "mamba_decoder."
		}
		t.Norm(layer+"input_layernorm", hidden, false)
		m.SSM.AddTo(t, layer+"mamba", hidden)
	})
}

// shared adds a transformer block.
func (m *Zamba2) shared(t *table.Table, name string) {
	hidden, wide := int64(m.Hidden), int64(m.Intermediate)
	kv := int64(m.KVHeads) * int64(m.HeadDim)
	by, keys := table.QueryRows(m.Heads, m.KVHeads), table.KeyRows(m.Heads, m.KVHeads)
	t.Norm(name+"input_layernorm", 2*hidden, false)
	t.Linear(name+"self_attn.q_proj", m.QueryWidth(), 2*hidden, false, by)
	t.Linear(name+"self_attn.k_proj", kv, 2*hidden, false, keys)
	t.Linear(name+"self_attn.v_proj", kv, 2*hidden, false, keys)
	t.Linear(name+"self_attn.o_proj", hidden, m.QueryWidth(), false, table.QueryColumns(m.Heads, m.KVHeads))
	t.Norm(name+"pre_ff_layernorm", hidden, false)
	// Ranks have all of the block: its projections of gate and input are one tensor, whose adapters are small.
	t.Linear(name+"feed_forward.gate_up_proj", 2*wide, hidden, m.MLPBias, table.Whole)
	t.Linear(name+"feed_forward.down_proj", hidden, wide, m.MLPBias, table.Whole)
}

// adapters adds the adapters of a use of a transformer block. Ranks have what gives the outputs of their heads.
func (m *Zamba2) adapters(t *table.Table, name string, number int) {
	add := func(of string, out, in int64, by table.Split) {
		prefix := fmt.Sprintf("%s%s_adapter_list.%d.", name, of, number)
		t.Linear(prefix+"0", int64(m.Rank), in, false, table.Whole)
		t.Linear(prefix+"1", out, int64(m.Rank), false, by)
	}
	if m.Adapters {
		keys := table.KeyRows(m.Heads, m.KVHeads)
		add("self_attn.linear_q", m.QueryWidth(), 2*int64(m.Hidden), table.QueryRows(m.Heads, m.KVHeads))
		add("self_attn.linear_k", m.QueryWidth(), 2*int64(m.Hidden), keys)
		add("self_attn.linear_v", m.QueryWidth(), 2*int64(m.Hidden), keys)
	}
	add("feed_forward.gate_up_proj", 2*int64(m.Intermediate), int64(m.Hidden), table.Whole)
}

// Carried implements [arch.Carrier]: the embeddings.
func (m *Zamba2) Carried(layer int) int64 { return carriedTwice(m.Hidden, layer < m.Layers) }

func (m *Zamba2) Link(i int) int { return i }

// Borrowed implements [arch.Linked]: layers share transformer blocks. Each use has adapters of its own.
func (m *Zamba2) Borrowed(i int) string {
	if !m.Hybrid[i] {
		return ""
	}
	name, _ := m.Shared(i)
	return name
}
