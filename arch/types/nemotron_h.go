package types

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/precision"
	"github.com/ingotml/ingot/arch/table"
)

// NemotronH is the configuration of model type "nemotron_h" (Nemotron-H, Nemotron Nano 2 and 3): layers that are a
// selective scan, attention without positions, a plain MLP or experts that are plain MLPs. MLPs square the positive
// part. Absent keys have the defaults of transformers 5.23; sizes are required.
type NemotronH struct {
	config.Common
	Kinds        []NemotronHLayer
	SSM          config.SSM
	Intermediate int            // of MLP layers
	Mixture      config.Mixture // of layers with experts
}

// NemotronHLayer is what a layer is.
type NemotronHLayer byte

// The kinds of layers, as the letters of hybrid_override_pattern.
const (
	NemotronHScan      NemotronHLayer = 'M'
	NemotronHAttention NemotronHLayer = '*'
	NemotronHMLP       NemotronHLayer = '-'
	NemotronHExperts   NemotronHLayer = 'E'
)

func init() {
	arch.Register(arch.Arch{
		ModelType:     "nemotron_h",
		Architectures: []string{"NemotronHForCausalLM"},
		Names: []string{
			"n_groups", "mamba_n_groups",
			"conv_kernel", "mamba_d_conv",
			"time_step_min", "mamba_dt_min",
			"use_conv_bias", "mamba_conv_bias",
		},
		GGUF:      []gguf.Map{ggufNemotronH, ggufNemotronHMoe},
		Published: table.Published{Experts: table.PerExpert},
		Chat: &arch.Chat{
			Marks: []string{"nemotronh", "nemotron_h"}, Parser: "nemotron-3", Renderer: "nemotron-3", Thinks: true,
		},
		Idle: []arch.Idle{
			{Why: "the largest initial time step", Keys: []string{"mamba_dt_max", "time_step_max"}},
			{Why: "the reference limits steps by time_step_min alone", Keys: []string{"time_step_limit", "mamba_dt_limit"}},
			{Why: "another key of the type says it", Keys: []string{"intermediate_size", "norm_eps", "num_hidden_layers"}},
			{Why: "the type has no rope", Keys: []string{"partial_rotary_factor", "rope_theta"}},
		},
		Docs: arch.Docs{
			Variants: "layers of Mamba 2, attention, MLPs and experts, in any order; latent experts, groups, biases",
			Rules:    "generic, also for experts",
		},
	}, ParseNemotronH)
}

// nemotronHLayers are the words for kinds of layers.
var nemotronHLayers = map[string]NemotronHLayer{
	config.MambaLayer: NemotronHScan, config.LinearAttention: NemotronHScan, config.AttentionLayer: NemotronHAttention,
	config.FullAttention: NemotronHAttention, "mlp": NemotronHMLP, "moe": NemotronHExperts,
}

// ParseNemotronH parses the config.json of a nemotron_h model.
func ParseNemotronH(data []byte) (*NemotronH, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	o = o.Renamed("rms_norm_eps", "layer_norm_epsilon")
	kinds := nemotronHKinds(o)
	if len(kinds) > 0 {
		o.Set("num_hidden_layers", len(kinds)) // the list decides
	}
	m := &NemotronH{Kinds: kinds, Common: config.ParseCommon(top, o, config.Defaults{
		Class: "NemotronHForCausalLM", KVHeads: 8, HeadDim: 128, Context: 4096, NormEps: 1e-5, BOS: []int32{1},
		EOS: []int32{2},
	})}
	m.Prefix, m.EmbedName, m.NormName = "backbone.", "embeddings", "norm_f"
	m.AttentionBias, m.OutputBias = false, false
	m.MLPBias = o.Bool("mlp_bias", false)
	o.Activation("mlp_hidden_act", "relu2")
	o.Activation("mamba_hidden_act", config.SiLU...)
	m.SSM = config.ParseSSM(o, config.SSMKeys{
		Heads: "mamba_num_heads", Dim: "mamba_head_dim", Groups: "n_groups", State: "ssm_state_size",
		Kernel: "conv_kernel", ConvBias: "use_conv_bias", Bias: "use_bias", OutputBias: "use_bias",
	}, config.SSMDefaults{Heads: 128, Dim: 64, Groups: 8, State: 128}, 0)
	// The reference limits steps by this key, and not by time_step_limit.
	m.SSM.MinStep, m.SSM.MaxStep = o.AtLeast("time_step_min", 0.001, 0), 0
	if strings.ContainsRune(m.pattern(), rune(NemotronHMLP)) {
		m.Intermediate = o.Integer("intermediate_size", 21504, 1, config.MaxWidth)
	}
	if strings.ContainsRune(m.pattern(), rune(NemotronHExperts)) {
		m.parseExperts(o)
	}
	return config.Done(m, o)
}

func (m *NemotronH) parseExperts(o config.Object) {
	m.Mixture.ReadGrouped(o, m.Common, config.MixtureDefaults{Count: 8, PerToken: 2, Width: 7688, SumToOne: true,
		Shared: 1})
	m.Mixture.Shared = o.Integer("moe_shared_expert_intermediate_size", 7688, 1, config.MaxWidth)
	m.Mixture.SharedBias = m.MLPBias
	m.Mixture.Plain = true
	m.Mixture.Latent = o.Integer("moe_latent_size", 0, 0, config.MaxWidth)
	m.Mixture.LatentBias = m.MLPBias
}

// nemotronHKinds reads the kinds of layers: a list of words, or a text of letters.
func nemotronHKinds(o config.Object) (kinds []NemotronHLayer) {
	for _, key := range []string{"layers_block_type", "layer_types"} {
		for i, word := range o.Strings(key) {
			kind, ok := nemotronHLayers[word]
			if !ok {
				o.Fail(key, fmt.Sprintf(`hold "mamba", "attention", "mlp" and "moe" only (element %d is %q)`, i, word))
			}
			kinds = append(kinds, kind)
		}
		if kinds != nil {
			return kinds
		}
	}
	const key = "hybrid_override_pattern"
	for _, letter := range o.String(key, "") {
		if !strings.ContainsRune("M*-E", letter) {
			o.Fail(key, "be of the letters M, *, - and E")
		}
		kinds = append(kinds, NemotronHLayer(letter))
	}
	if kinds == nil {
		o.Missing("layers_block_type")
	}
	return kinds
}

func (m *NemotronH) pattern() string {
	var b strings.Builder
	for _, kind := range m.Kinds {
		b.WriteByte(byte(kind))
	}
	return b.String()
}

func (m *NemotronH) State() []config.LayerState {
	list := m.KVStates(0, nil)
	for i, kind := range m.Kinds {
		switch kind {
		case NemotronHScan:
			list[i] = m.SSM.LayerState()
		case NemotronHMLP, NemotronHExperts:
			list[i] = config.LayerState{}
		}
	}
	return list
}

func (m *NemotronH) Facts() config.Facts { return m.FactsAs("nemotron_h", config.NoRope, m.Table()) }

func (m *NemotronH) Rules() precision.Rules { return precision.Generic(m.Layers) }

func (m *NemotronH) Table() table.Table {
	hidden := int64(m.Hidden)
	t := m.TableOf("nemotron_h", false, func(t *table.Table, layer string, i int) {
		t.Norm(layer+"norm", hidden, false)
		switch name := layer + "mixer"; m.Kinds[i] {
		case NemotronHScan:
			m.SSM.AddTo(t, name, hidden)
		case NemotronHAttention:
			m.AddProjections(t, name, m.QueryWidth())
		case NemotronHMLP:
			t.Linear(name+".up_proj", int64(m.Intermediate), hidden, m.MLPBias, table.Outputs)
			t.Linear(name+".down_proj", hidden, int64(m.Intermediate), m.MLPBias, table.Inputs)
		case NemotronHExperts:
			m.Mixture.AddTo(t, name, m.Hidden)
		}
	})
	t.LeaveOut("mtp", "heads that predict further tokens are not imported", "mtp.*")
	return t
}

// The mappings of nemotron_h without experts and with them.
var (
	ggufNemotronH    = nemotronHOf("nemotron_h", false)
	ggufNemotronHMoe = nemotronHOf("nemotron_h_moe", true,
		append(gguf.GroupedKeys("n_routed_experts", "n_shared_experts"),
			gguf.Key{
				Key: "expert_shared_feed_forward_length", To: "moe_shared_expert_intermediate_size", Field: "Shared",
			},
			gguf.Key{Key: "moe_latent_size", To: "moe_latent_size", Field: "Mixture.Latent", Optional: true})...)
)

func nemotronHOf(architecture string, experts bool, more ...gguf.Key) gguf.Map {
	keys := more
	if !experts {
		keys = gguf.Keys()
	}
	keys = slices.DeleteFunc(slices.Clone(keys), func(k gguf.Key) bool {
		return slices.Contains([]string{
			"attention.layer_norm_rms_epsilon", "rope.freq_base", "leading_dense_block_count", "feed_forward_length",
		}, k.Key)
	})
	return gguf.Map{
		Architecture: architecture,
		For: func(m gguf.Model) bool {
			q, ok := m.(*NemotronH)
			return ok && slices.Contains(q.Kinds, NemotronHExperts) == experts
		},
		Limits: gguf.Limits{Biases: gguf.AllBiases, AnySparse: true},
		Config: map[string]any{"model_type": "nemotron_h", "architectures": []string{"NemotronHForCausalLM"}},
		Keys: slices.Concat(keys, gguf.SSMKeys("conv_kernel", "ssm_state_size", "n_groups", "mamba_num_heads"), []gguf.Key{
			{Key: "attention.layer_norm_rms_epsilon", To: "layer_norm_epsilon", Optional: true},
			{Key: "attention.layer_norm_epsilon", To: "layer_norm_epsilon", Field: "NormEps", Optional: true},
		}),
		Tensors: slices.Concat(gguf.Backbone(), gguf.Under("backbone.layers.*.", slices.Concat(gguf.SSM("mixer"),
			gguf.Linears(gguf.PairedRows(func(c config.Common) int { return c.Heads }), "attn_q", "mixer.q_proj"),
			gguf.Linears(gguf.PairedRows(func(c config.Common) int { return c.KVHeads }), "attn_k", "mixer.k_proj"),
			gguf.Linears(gguf.Op{}, "attn_v", "mixer.v_proj", "attn_output", "mixer.o_proj",
				"ffn_up", "mixer.up_proj", "ffn_down", "mixer.down_proj",
				"ffn_up_shexp", "mixer.shared_experts.up_proj", "ffn_down_shexp", "mixer.shared_experts.down_proj",
				"ffn_latent_down", "mixer.fc1_latent_proj", "ffn_latent_up", "mixer.fc2_latent_proj"),
			gguf.Names(gguf.Op{}, "ffn_gate_inp.weight", "mixer.gate.weight",
				"exp_probs_b.bias", "mixer.gate.e_score_correction_bias",
				"ffn_up_exps.weight", "mixer.switch_mlp.fc1.weight", "ffn_down_exps.weight", "mixer.switch_mlp.fc2.weight")))),
		Next: []gguf.Tensor{{
			Name: "blk.*" + gguf.AnyTensor, Why: "a head for tokens after the next, which is not supported for nemotron_h",
		}},
		Adjust: func(c map[string]any, f gguf.File) error { return adjustNemotronH(c, architecture, f) },
		Also:   alsoNemotronH,
		Refuse: refuseNemotronH,
	}
}

func adjustNemotronH(c map[string]any, architecture string, f gguf.File) error {
	if err := gguf.DropNext(c, architecture, f); err != nil {
		return err
	}
	full, err := gguf.SetFull(c, f)
	if err != nil {
		return err
	}
	var pattern strings.Builder
	for i := range full {
		kind := NemotronHMLP
		for name, of := range map[string]NemotronHLayer{"ssm_in": NemotronHScan, "ffn_gate_inp": NemotronHExperts} {
			if _, ok := f.Shape(fmt.Sprintf("blk.%d.%s.weight", i, name)); ok {
				kind = of
			}
		}
		if full[i] {
			kind = NemotronHAttention
		}
		if shape, ok := f.Shape(fmt.Sprintf("blk.%d.ffn_up.weight", i)); ok && len(shape) == 2 {
			c["intermediate_size"] = shape[0]
		}
		pattern.WriteByte(byte(kind))
	}
	c["hybrid_override_pattern"] = pattern.String()
	c["use_conv_bias"] = gguf.AnyLayer(c, f, "ssm_conv1d.bias")
	c["use_bias"] = gguf.AnyLayer(c, f, "ssm_in.bias")
	c["attention_bias"] = gguf.AnyLayer(c, f, "attn_q.bias")
	c["mlp_bias"] = gguf.AnyLayer(c, f, "ffn_up.bias") || gguf.AnyLayer(c, f, "ffn_up_shexp.bias")
	if _, ok := c["head_dim"]; !ok {
		return fmt.Errorf("%w: %s.attention.key_length is missing", gguf.ErrMetadata, architecture)
	}
	if n, ok := c["expert_used_count"].([]any); ok {
		return fmt.Errorf("%s.expert_used_count = %v: %w: experts that differ by layer", architecture, n,
			arch.ErrUnknownArchitecture)
	}
	return gguf.SetInner(c, architecture, f, "mamba_num_heads", "mamba_head_dim", "expand")
}

func alsoNemotronH(m gguf.Model) []gguf.Pair {
	q, ok := m.(*NemotronH)
	if !ok {
		return nil
	}
	full, widths := make([]bool, len(q.Kinds)), make([]int, len(q.Kinds))
	for i, kind := range q.Kinds {
		switch full[i] = kind == NemotronHAttention; kind {
		case NemotronHMLP:
			widths[i] = q.Intermediate
		case NemotronHExperts:
			widths[i] = q.Mixture.Experts.Intermediate
		}
	}
	return []gguf.Pair{
		gguf.KVHeads(q.KVHeads, full), {Key: "feed_forward_length", Value: widths},
		{Key: "ssm.inner_size", Value: q.SSM.Width()},
		{Key: "rope.scaling.finetuned", Value: false},
	}
}

func refuseNemotronH(m gguf.Model) string {
	q, ok := m.(*NemotronH)
	switch {
	case ok && q.Mixture.LatentBias && q.Mixture.Latent > 0, ok && q.Mixture.SharedBias && q.Mixture.Shared > 0:
		return "has no biases of experts"
	}
	return gguf.RefuseSSM(m)
}
