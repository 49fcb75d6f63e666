package arch

import (
	"fmt"
	"strings"
)

// NemotronH is the configuration of model type "nemotron_h" (Nemotron-H, Nemotron Nano 2 and 3): layers that are a
// selective scan, attention without positions, a plain MLP or experts that are plain MLPs. MLPs square the positive
// part. Absent keys have the defaults of transformers 5.23; sizes are required.
type NemotronH struct {
	Common
	Kinds        []NemotronHLayer
	SSM          SSM
	Intermediate int     // of MLP layers
	Mixture      Mixture // of layers with experts
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
	register(Arch{
		ModelType:     "nemotron_h",
		Architectures: []string{"NemotronHForCausalLM"},
		Names: []string{
			"n_groups", "mamba_n_groups",
			"conv_kernel", "mamba_d_conv",
			"time_step_min", "mamba_dt_min",
			"use_conv_bias", "mamba_conv_bias",
		},
		Parse: func(config []byte) (Model, error) { return ParseNemotronH(config) },
		GGUF:  []GGUF{ggufNemotronH, ggufNemotronHMoe},
		Docs: Docs{
			Variants: "layers of Mamba 2, attention, MLPs and experts, in any order; latent experts, groups, biases",
			Rules:    "generic, also for experts",
		},
	})
}

// nemotronHLayers are the words for kinds of layers.
var nemotronHLayers = map[string]NemotronHLayer{
	mambaLayer: NemotronHScan, linearAttention: NemotronHScan, attentionLayer: NemotronHAttention,
	fullAttention: NemotronHAttention, "mlp": NemotronHMLP, "moe": NemotronHExperts,
}

// ParseNemotronH parses the config.json of a nemotron_h model.
func ParseNemotronH(config []byte) (*NemotronH, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	o = o.called("rms_norm_eps", "layer_norm_epsilon")
	kinds := o.nemotronHKinds()
	if len(kinds) > 0 {
		o.set("num_hidden_layers", len(kinds)) // the list decides
	}
	m := &NemotronH{Kinds: kinds, Common: parseCommon(top, o, commonDefaults{
		class: "NemotronHForCausalLM", kv: 8, dim: 128, ctx: 4096, eps: 1e-5, bos: []int32{1}, eos: []int32{2},
	})}
	m.Prefix, m.EmbedName, m.NormName = "backbone.", "embeddings", "norm_f"
	m.AttentionBias, m.OutputBias = false, false
	m.MLPBias = o.boolean("mlp_bias", false)
	o.activation("mlp_hidden_act", "relu2")
	o.activation("mamba_hidden_act", silu...)
	m.SSM = parseSSM(o, ssmKeys{
		heads: "mamba_num_heads", dim: "mamba_head_dim", groups: "n_groups", state: "ssm_state_size",
		kernel: "conv_kernel", convBias: "use_conv_bias", bias: "use_bias", outputBias: "use_bias",
	}, ssmDefaults{heads: 128, dim: 64, groups: 8, state: 128}, 0)
	// The reference limits steps by this key, and not by time_step_limit.
	m.SSM.MinStep, m.SSM.MaxStep = o.atLeast("time_step_min", 0.001, 0), 0
	if strings.ContainsRune(m.pattern(), rune(NemotronHMLP)) {
		m.Intermediate = o.integer("intermediate_size", 21504, 1, maxWidth)
	}
	if strings.ContainsRune(m.pattern(), rune(NemotronHExperts)) {
		m.parseExperts(o)
	}
	return parsed(m, o)
}

func (m *NemotronH) parseExperts(o object) {
	m.Mixture.parseGrouped(o, m.Common, mixtureDefaults{count: 8, perToken: 2, width: 7688, sumToOne: true, shared: 1})
	m.Mixture.Shared = o.integer("moe_shared_expert_intermediate_size", 7688, 1, maxWidth)
	m.Mixture.SharedBias = m.MLPBias
	m.Mixture.Plain = true
	m.Mixture.Latent = o.integer("moe_latent_size", 0, 0, maxWidth)
	m.Mixture.LatentBias = m.MLPBias
}

// nemotronHKinds reads the kinds of layers: a list of words, or a text of letters.
func (o object) nemotronHKinds() (kinds []NemotronHLayer) {
	for _, key := range []string{"layers_block_type", "layer_types"} {
		for i, word := range o.strs(key) {
			kind, ok := nemotronHLayers[word]
			if !ok {
				o.fail(key, fmt.Sprintf(`hold "mamba", "attention", "mlp" and "moe" only (element %d is %q)`, i, word))
			}
			kinds = append(kinds, kind)
		}
		if kinds != nil {
			return kinds
		}
	}
	const key = "hybrid_override_pattern"
	for _, letter := range o.str(key, "") {
		if !strings.ContainsRune("M*-E", letter) {
			o.fail(key, "be of the letters M, *, - and E")
		}
		kinds = append(kinds, NemotronHLayer(letter))
	}
	if kinds == nil {
		o.missing("layers_block_type")
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

// State implements [Model].
func (m *NemotronH) State() []LayerState {
	list := m.kvStates(0, nil)
	for i, kind := range m.Kinds {
		switch kind {
		case NemotronHScan:
			list[i] = m.SSM.state()
		case NemotronHMLP, NemotronHExperts:
			list[i] = LayerState{}
		}
	}
	return list
}

// Facts implements [Model].
func (m *NemotronH) Facts() Facts { return m.facts("nemotron_h", noRope, m.Table()) }

// Rules implements [Model].
func (m *NemotronH) Rules() Rules { return genericRules(m.Layers) }

// Table implements [Model].
func (m *NemotronH) Table() Table {
	hidden := int64(m.Hidden)
	t := m.decoder("nemotron_h", false, func(t *Table, layer string, i int) {
		t.norm(layer+"norm", hidden, false)
		switch name := layer + "mixer"; m.Kinds[i] {
		case NemotronHScan:
			t.ssm(name, m.SSM, hidden)
		case NemotronHAttention:
			m.projections(t, name, m.queries())
		case NemotronHMLP:
			t.linear(name+".up_proj", int64(m.Intermediate), hidden, m.MLPBias, column)
			t.linear(name+".down_proj", hidden, int64(m.Intermediate), m.MLPBias, row)
		case NemotronHExperts:
			t.mixture(name, m.Mixture, m.Hidden)
		}
	})
	t.leaveOut("mtp", "heads that predict further tokens are not imported", "mtp.*")
	return t
}
