package types

import (
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/decoder"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// ExaoneMoe is the configuration of model type "exaone_moe" (K-EXAONE): a pre-norm decoder with norms of queries and
// keys, sliding layers between full ones without rope, experts of a sigmoid router and shared experts. Absent keys have
// the defaults of transformers 5.23; sizes are required.
type ExaoneMoe struct {
	config.Dense
	Mixture config.Mixture
	Rotates []bool // by layer: queries and keys are rotated
	// NextLayers is the number of layers of the multi-token prediction head. Its tensors (mtp.*) may be absent. NextWindow
	// is the window of its attention; 0 = all positions, without rope if other layers slide.
	NextLayers, NextWindow int
}

func init() {
	arch.Register(arch.Arch{
		ModelType:     "exaone_moe",
		Architectures: []string{"ExaoneMoeForCausalLM", "ExaoneMoEForCausalLM"},
		GGUF:          []gguf.Map{ggufExaoneMoe},
		Published:     table.Published{Experts: table.PerExpert},
		Docs: arch.Docs{
			Variants: "sliding layers by pattern or `layer_types`, full layers without rope, groups of experts, shared experts",
			Rules:    "generic, also for experts",
			Draft:    qwen35DraftDoc,
		},
	}, ParseExaoneMoe)
}

// ParseExaoneMoe parses the config.json of an exaone_moe model.
func ParseExaoneMoe(data []byte) (*ExaoneMoe, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &ExaoneMoe{Dense: config.ParseDecoder(top, o, config.Defaults{
		Class: "ExaoneMoeForCausalLM", KVHeads: 32, Context: 2048, NormEps: 1e-5, BOS: []int32{1}, EOS: []int32{53},
	}, config.RopeOptions{})}
	m.AttentionBias, m.OutputBias = false, false
	m.Intermediate = o.Integer("intermediate_size", 16384, 1, config.MaxWidth)
	m.Mixture.ReadGrouped(o, m.Common, config.MixtureDefaults{
		Count: 64, PerToken: 8, Width: 1024, SumToOne: true, Scaling: 2.5, Shared: 1,
	})
	m.Mixture.ReadDense(o, 1)
	window := o.Window("sliding_window", 4096)
	sliding := parseLetters(o, m.Layers)
	m.Slide(window, sliding)
	m.Rotates = make([]bool, m.Layers)
	for i := range m.Rotates {
		m.Rotates[i] = window == 0 || sliding[i]
	}
	m.parseNext(o, window > 0 && sliding[0])
	return config.Done(m, o)
}

// parseNext reads the keys of the multi-token prediction head. slides is the kind of layer if they do not say it:
// that of the first layer, as in the publisher's code.
func (m *ExaoneMoe) parseNext(o config.Object, slides bool) {
	m.NextLayers = o.FirstInteger(1, 0, 16, "num_nextn_predict_layers", "num_mtp_layers")
	if kinds := o.Words("mtp_layer_types", m.NextLayers, config.FullAttention, config.SlidingAttention); len(kinds) > 0 {
		slides = kinds[0] == config.SlidingAttention
	}
	if slides {
		m.NextWindow = m.Window
		if list := o.Integers("mtp_sliding_windows", 16, 0, config.MaxContext); len(list) > 0 {
			m.NextWindow = list[0]
		}
	}
}

// HasNext reports whether the tensors of a multi-token prediction head are imported. No published checkpoint has one of
// several layers.
func (m *ExaoneMoe) HasNext() bool { return m.NextLayers == 1 }

// parseLetters returns which layers slide: those of layer_types, of a repeated pattern such as "LLLG", or all but every
// n-th.
func parseLetters(o config.Object, layers int) []bool {
	const key = "sliding_window_pattern"
	letters := ""
	switch {
	case o.Has("layer_types"):
		letters = "G" // not read
	case len(o.Keys[key]) == 0 || o.Keys[key][0] != '"':
		return config.ParsePattern(o, layers, 4)
	default:
		if letters = o.String(key, ""); letters == "" || strings.Trim(letters, "LG") != "" {
			o.Fail(key, "be a number, or letters L for sliding and G for full layers")
			letters = "G"
		}
	}
	kinds := o.Words("layer_types", layers, config.FullAttention, config.SlidingAttention)
	sliding := make([]bool, layers)
	for i := range sliding {
		sliding[i] = letters[i%len(letters)] == 'L'
		if kinds != nil {
			sliding[i] = kinds[i] == config.SlidingAttention
		}
	}
	return sliding
}

func (m *ExaoneMoe) Facts() config.Facts { return m.FactsAs("exaone_moe", m.Rope, m.Table()) }

func (m *ExaoneMoe) Table() table.Table {
	t := m.Decoder().Table("exaone_moe")
	t.Also([]string{".mlp.gate.e_score_correction_bias", ".mlp.e_score_correction_bias"})
	m.next(&t)
	return t
}

// Decoder implements [arch.Described].
func (m *ExaoneMoe) Decoder() config.Decoder {
	return config.Decoder{Dense: &m.Dense, Mixture: &m.Mixture, Description: decoder.Description{
		HeadNorms:  decoder.QK,
		RopeLayers: m.Rotates,
	}}
}

// next adds the multi-token prediction head, whose layer has no experts. Its embedding and output head are the model's.
func (m *ExaoneMoe) next(t *table.Table) {
	if !m.HasNext() {
		t.LeaveOut("mtp", "a head for tokens after the next, which is supported with one layer only", mtpPrefix+"*")
		return
	}
	hidden := int64(m.Hidden)
	t.Parts = append([]table.Part{{Name: "mtp", Prefix: mtpPrefix, Optional: true, Accept: []string{"model.mtp."}}},
		t.Parts...)
	t.Norm(mtpPrefix+"pre_fc_norm_embedding", hidden, false)
	t.Norm(mtpPrefix+"pre_fc_norm_hidden", hidden, false)
	t.Linear(mtpPrefix+"fc", hidden, 2*hidden, false, table.Whole)
	m.Decoder().AddLayer(t, mtpPrefix+"layers.0.", false)
	t.Norm(mtpPrefix+"norm", hidden, false)
}

// ggufExaoneMoe is the mapping of exaone_moe.
var ggufExaoneMoe = gguf.Map{
	Architecture: "exaone-moe",
	Limits:       gguf.Limits{OwnHead: true},
	Config: map[string]any{
		"model_type": "exaone_moe", "architectures": []string{"ExaoneMoeForCausalLM"},
	},
	Keys: append(gguf.GroupedKeys("num_experts", "num_shared_experts"),
		gguf.Key{Key: "attention.sliding_window", To: "sliding_window", Field: "Window"}),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.QK, gguf.Values, gguf.MLP, gguf.MoE, gguf.SharedExperts,
		gguf.HeadNorms,
		gguf.PreNorms),
	Next: []gguf.Tensor{{
		Name: "blk.*" + gguf.AnyTensor, Why: "a head for tokens after the next, which is not imported from GGUF files",
	}},
	Adjust: func(c map[string]any, f gguf.File) error {
		gguf.SetSliding(c, "exaone-moe", f)
		if err := gguf.DropNext(c, "exaone-moe", f); err != nil {
			return err
		}
		return gguf.SetSparse(c, f)
	},
}
