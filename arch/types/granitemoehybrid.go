package types

import (
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// GraniteMoeHybrid is the configuration of model type "granitemoehybrid" (Granite 4): [Granite] with layers of
// attention or a selective scan, and an MLP for every token beside the experts, of which there may be none. Absent keys
// have the defaults of transformers 5.23; sizes are required.
type GraniteMoeHybrid struct {
	Granite
	Full      []bool // by layer: attention, else a scan
	Unrotated bool   // attention has no positions
	SSM       config.SSM
	Mixture   *config.Mixture // nil = no experts
	Shared    int             // width of the MLP for every token
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "granitemoehybrid",
		Architectures: []string{"GraniteMoeHybridForCausalLM"},
		Names:         []string{"layer_types", "layers_block_type"},
		GGUF:          []gguf.Map{ggufGraniteHybrid, ggufGraniteHybridDense},
		Published: table.Published{
			Projections: table.Fused,
			Apart:       true,
			HuggingFace: []string{
				".block_sparse_moe.gate.", ".block_sparse_moe.router.layer.",
				".block_sparse_moe.experts.gate_up_proj", ".block_sparse_moe.input_linear.weight",
				".block_sparse_moe.experts.down_proj", ".block_sparse_moe.output_linear.weight",
				".shared_mlp.down_proj.", ".shared_mlp.output_linear.",
			},
			MLX: []string{
				".block_sparse_moe.gate.", ".block_sparse_moe.router.layer.",
				".shared_mlp.down_proj.", ".shared_mlp.output_linear.",
			},
		},
		Idle: []arch.Idle{
			{Why: "the largest initial time step", Keys: []string{"mamba_dt_max", "time_step_max"}},
		},
		Docs: arch.Docs{
			Variants: "Mamba 2 layers with some of attention, with rope or without positions; experts or none; multipliers; " +
				"biases; tied embeddings",
			Rules: "generic, also for experts",
		},
	}, ParseGraniteMoeHybrid)
}

// ParseGraniteMoeHybrid parses the config.json of a granitemoehybrid model.
func ParseGraniteMoeHybrid(data []byte) (*GraniteMoeHybrid, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	d := config.Defaults{Class: "GraniteMoeHybridForCausalLM", Context: 2048, NormEps: 1e-6, BOS: []int32{1},
		EOS: []int32{2}}
	m := &GraniteMoeHybrid{Granite: Granite{
		Dense:          config.ParseDecoder(top, o, d, config.RopeOptions{}),
		EmbeddingScale: o.Above("embedding_multiplier", 1, 0),
		AttentionScale: o.Above("attention_multiplier", 1, 0),
		ResidualScale:  o.Above("residual_multiplier", 1, 0),
		LogitDivisor:   o.Above("logits_scaling", 1, 0),
	}}
	m.Full, _ = o.FullLayers("layer_types", m.Layers)
	m.Unrotated = o.String("position_embedding_type", "") != "rope"
	m.Shared = o.Integer("shared_intermediate_size", 1024, 1, config.MaxWidth)
	if o.Integer("num_local_experts", 8, 0, config.MaxExperts) > 0 {
		m.Mixture = &config.Mixture{}
		m.Mixture.ReadExperts(o, m.Common, config.MixtureDefaults{Count: 8, PerToken: 2}, "intermediate_size")
		m.Mixture.Experts.NormTopK = true
	}
	m.SSM = config.ParseSSM(o, config.HybridSSM, config.SSMDefaults{Heads: 128, Groups: 1, State: 256},
		o.Integer("mamba_expand", 2, 1, 64)*m.Hidden)
	return config.Done(m, o)
}

func (m *GraniteMoeHybrid) State() []config.LayerState {
	return m.HybridStates(m.Full, m.SSM.LayerState())
}

func (m *GraniteMoeHybrid) Facts() config.Facts {
	return m.FactsAs("granitemoehybrid", m.Rope, m.Table())
}

func (m *GraniteMoeHybrid) Table() table.Table {
	t := m.Decoder().OwnTable("granitemoehybrid", config.Own{
		Mixer: func(t *table.Table, layer string, i int) bool {
			if m.Full[i] {
				return false
			}
			m.SSM.AddTo(t, layer+"mamba", int64(m.Hidden))
			return true
		},
		Network: func(t *table.Table, layer string, _ int) bool {
			if m.Mixture != nil {
				m.Mixture.AddTo(t, layer+"block_sparse_moe", m.Hidden)
			}
			m.AddMLP(t, layer+"shared_mlp", m.Shared)
			t.Fuses(layer+"shared_mlp.input_linear", layer+"shared_mlp.gate_proj", layer+"shared_mlp.up_proj")
			return true
		},
	})
	const block = ".block_sparse_moe."
	t.Also(
		[]string{
			block + "gate.", block + "router.layer.", block + "experts.gate_up_proj", block + "input_linear.weight",
			block + "experts.down_proj", block + "output_linear.weight", ".shared_mlp.down_proj.", ".shared_mlp.output_linear.",
		},
		[]string{block + "gate.", block + "router."},
	)
	return t
}

// Decoder implements [arch.Described].
func (m *GraniteMoeHybrid) Decoder() config.Decoder {
	d := m.Granite.Decoder()
	if m.Unrotated {
		d.RopeLayers = make([]bool, m.Layers)
	}
	return d
}

// ggufGraniteHybrid are the mappings of llama.cpp's granitehybrid, which has the changes of llama: Granite 4 with
// experts and without, and Bamba, whose attention has a rope.
var ggufGraniteHybrid = graniteHybrid(true, gguf.MoE,
	gguf.Key{Key: "feed_forward_length", To: "intermediate_size", Field: "Experts.Intermediate"},
	gguf.Key{Key: "expert_count", To: "num_local_experts", Field: "Experts.Count"},
	gguf.Key{Key: "expert_used_count", To: "num_experts_per_tok", Field: "Experts.PerToken"},
	gguf.Key{Key: "expert_shared_feed_forward_length", To: "shared_intermediate_size", Field: "Shared"})

var ggufGraniteHybridDense = graniteHybrid(false, nil,
	gguf.Key{Key: "expert_shared_feed_forward_length", To: "shared_intermediate_size", Field: "Shared", Optional: true})

// ggufRotates reports whether the attention of a granitehybrid has a rope.
func ggufRotates(f gguf.File) bool {
	v, _ := f.Value("granitehybrid.rope.scaling.finetuned")
	return v != false
}

// ggufScales reports whether a granitehybrid has Granite's multipliers.
func ggufScales(f gguf.File) bool {
	_, ok := f.Value("granitehybrid.attention.scale")
	return ok
}

// graniteWidth says why llama.cpp cannot compute a layer; "" = it can.
func graniteWidth(m gguf.Model, d config.SSM, hidden int) string {
	if d.Width() != 2*hidden {
		return "has Mamba layers of twice the width of the model"
	}
	return gguf.RefuseSSM(m)
}

// graniteHybrid is the mapping of Granite 4 with the given tensors of experts or without. The MLP of all tokens is the
// shared expert, or else the layer's only one.
func graniteHybrid(experts bool, tensors []gguf.Tensor, more ...gguf.Key) gguf.Map {
	kind := ""
	if experts {
		kind = "_shexp"
	}
	tensors = slices.Clone(tensors)
	for i := range tensors {
		tensors[i].To = strings.Replace(tensors[i].To, ".mlp.", ".block_sparse_moe.", 1)
	}
	const architecture = "granitehybrid"
	return gguf.Map{
		Architecture: architecture,
		When: func(f gguf.File) bool {
			_, ok := f.Shape("blk.0.ffn_gate_inp.weight")
			return ok == experts && (ggufScales(f) || !ggufRotates(f))
		},
		For: func(m gguf.Model) bool {
			q, ok := m.(*GraniteMoeHybrid)
			return ok && (q.Mixture != nil) == experts
		},
		Limits: gguf.Limits{Biases: gguf.AttentionBiases, Square: true},
		Config: map[string]any{
			"model_type": "granitemoehybrid", "architectures": []string{"GraniteMoeHybridForCausalLM"},
			"num_local_experts": 0,
		},
		Keys: gguf.Keys(slices.Concat(gguf.HybridSSM, []gguf.Key{
			{Key: "attention.scale", To: "attention_multiplier", Field: "AttentionScale", Optional: true},
			{Key: "embedding_scale", To: "embedding_multiplier", Field: "EmbeddingScale", Optional: true},
			{Key: "residual_scale", To: "residual_multiplier", Field: "ResidualScale", Optional: true},
			{Key: "logit_scale", To: "logits_scaling", Field: "LogitDivisor", Optional: true},
		}, more)...),
		Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.PairedQK, gguf.Values, gguf.SSM("mamba"), gguf.PreNorms, tensors,
			gguf.Names(gguf.Op{}, "ffn_gate"+kind+".weight", "shared_mlp.gate_proj.weight",
				"ffn_up"+kind+".weight", "shared_mlp.up_proj.weight", "ffn_down"+kind+".weight", "shared_mlp.down_proj.weight")),
		Adjust: func(c map[string]any, f gguf.File) error {
			full, err := gguf.SetFull(c, f)
			if err != nil {
				return err
			}
			kinds := make([]string, len(full))
			for i := range kinds {
				if kinds[i] = config.MambaLayer; full[i] {
					kinds[i] = config.AttentionLayer
				}
			}
			c["layer_types"], c["position_embedding_type"] = kinds, "nope"
			if ggufRotates(f) {
				c["position_embedding_type"] = "rope"
			}
			if shape, ok := f.Shape("blk.0.ffn_up" + kind + ".weight"); ok && len(shape) == 2 {
				c["shared_intermediate_size"] = shape[0]
			}
			return gguf.SetHybridBiases(c, architecture, f)
		},
		Also: func(m gguf.Model) []gguf.Pair {
			q, ok := m.(*GraniteMoeHybrid)
			if !ok {
				return nil
			}
			pairs := []gguf.Pair{
				gguf.KVHeads(q.KVHeads, q.Full), {Key: "ssm.inner_size", Value: q.SSM.Width()},
				{Key: "rope.scaling.finetuned", Value: !q.Unrotated},
			}
			if q.Mixture == nil {
				return append(pairs, gguf.Pair{Key: "feed_forward_length", Value: q.Shared},
					gguf.Pair{Key: "expert_count", Value: 0})
			}
			return pairs
		},
		Refuse: func(m gguf.Model) string {
			q, ok := m.(*GraniteMoeHybrid)
			if !ok {
				return ""
			}
			return graniteWidth(m, q.SSM, q.Hidden)
		},
	}
}
