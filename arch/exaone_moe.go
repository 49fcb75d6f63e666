package arch

import "strings"

// ExaoneMoe is the configuration of model type "exaone_moe" (K-EXAONE): a pre-norm decoder with norms of queries and
// keys, sliding layers between full ones without rope, experts of a sigmoid router and shared experts. Absent keys have
// the defaults of transformers 5.23; sizes are required.
type ExaoneMoe struct {
	Dense
	Mixture Mixture
	Rotates []bool // by layer: queries and keys are rotated
	// NextLayers is the number of layers of the multi-token prediction head. Its tensors (mtp.*) may be absent. NextWindow
	// is the window of its attention; 0 = all positions, without rope if other layers slide.
	NextLayers, NextWindow int
}

func init() {
	register(Arch{
		ModelType:     "exaone_moe",
		Architectures: []string{"ExaoneMoeForCausalLM", "ExaoneMoEForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseExaoneMoe(config) },
		GGUF:          []GGUF{ggufExaoneMoe},
		Docs: Docs{
			Variants: "sliding layers by pattern or `layer_types`, full layers without rope, groups of experts, shared experts",
			Rules:    "generic, also for experts",
			Draft:    qwen35DraftDoc,
		},
	})
}

// ParseExaoneMoe parses the config.json of an exaone_moe model.
func ParseExaoneMoe(config []byte) (*ExaoneMoe, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	m := &ExaoneMoe{Dense: parseDecoder(top, o, commonDefaults{
		class: "ExaoneMoeForCausalLM", kv: 32, ctx: 2048, eps: 1e-5, bos: []int32{1}, eos: []int32{53},
	}, ropeOptions{})}
	m.AttentionBias, m.OutputBias = false, false
	m.Intermediate = o.integer("intermediate_size", 16384, 1, maxWidth)
	m.Mixture.parseGrouped(o, m.Common, mixtureDefaults{
		count: 64, perToken: 8, width: 1024, sumToOne: true, scaling: 2.5, shared: 1,
	})
	m.Mixture.parseDense(o, 1)
	window := o.window("sliding_window", 4096)
	sliding := parseLetters(o, m.Layers)
	m.slide(window, sliding)
	m.Rotates = make([]bool, m.Layers)
	for i := range m.Rotates {
		m.Rotates[i] = window == 0 || sliding[i]
	}
	m.parseNext(o, window > 0 && sliding[0])
	return parsed(m, o)
}

// parseNext reads the keys of the multi-token prediction head. slides is the kind of layer if they do not say it:
// that of the first layer, as in the publisher's code.
func (m *ExaoneMoe) parseNext(o object, slides bool) {
	m.NextLayers = o.integerOf(1, 0, 16, "num_nextn_predict_layers", "num_mtp_layers")
	if kinds := o.kinds("mtp_layer_types", m.NextLayers, fullAttention, slidingAttention); len(kinds) > 0 {
		slides = kinds[0] == slidingAttention
	}
	if slides {
		m.NextWindow = m.Window
		if list := o.integers("mtp_sliding_windows", 16, 0, maxContext); len(list) > 0 {
			m.NextWindow = list[0]
		}
	}
}

// HasNext reports whether the tensors of a multi-token prediction head are imported. No published checkpoint has one of
// several layers.
func (m *ExaoneMoe) HasNext() bool { return m.NextLayers == 1 }

// parseLetters returns which layers slide: those of layer_types, of a repeated pattern such as "LLLG", or all but every
// n-th.
func parseLetters(o object, layers int) []bool {
	const key = "sliding_window_pattern"
	letters := ""
	switch {
	case o.has("layer_types"):
		letters = "G" // not read
	case len(o.raw[key]) == 0 || o.raw[key][0] != '"':
		return parsePattern(o, layers, 4)
	default:
		if letters = o.str(key, ""); letters == "" || strings.Trim(letters, "LG") != "" {
			o.fail(key, "be a number, or letters L for sliding and G for full layers")
			letters = "G"
		}
	}
	kinds := o.kinds("layer_types", layers, fullAttention, slidingAttention)
	sliding := make([]bool, layers)
	for i := range sliding {
		sliding[i] = letters[i%len(letters)] == 'L'
		if kinds != nil {
			sliding[i] = kinds[i] == slidingAttention
		}
	}
	return sliding
}

// Facts implements [Model].
func (m *ExaoneMoe) Facts() Facts { return m.facts("exaone_moe", m.Rope, m.Table()) }

// Table implements [Model].
func (m *ExaoneMoe) Table() Table {
	t := m.decodes("exaone_moe", m.Mixture, m.headNorms)
	t.also([]string{".mlp.gate.e_score_correction_bias", ".mlp.e_score_correction_bias"})
	m.next(&t)
	return t
}

// next adds the multi-token prediction head, whose layer has no experts. Its embedding and output head are the model's.
func (m *ExaoneMoe) next(t *Table) {
	if !m.HasNext() {
		t.leaveOut("mtp", "a head for tokens after the next, which is supported with one layer only", mtpPrefix+"*")
		return
	}
	hidden := int64(m.Hidden)
	t.Parts = append([]Part{{Name: "mtp", Prefix: mtpPrefix, Optional: true, Accept: []string{"model.mtp."}}}, t.Parts...)
	t.norm(mtpPrefix+"pre_fc_norm_embedding", hidden, false)
	t.norm(mtpPrefix+"pre_fc_norm_hidden", hidden, false)
	t.linear(mtpPrefix+"fc", hidden, 2*hidden, false, replicated)
	m.decoderLayer(t, mtpPrefix+"layers.0.", m.Mixture, false, m.headNorms)
	t.norm(mtpPrefix+"norm", hidden, false)
}
