package types

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/precision"
	"github.com/ingotml/ingot/arch/table"
)

// Gemma3n is the configuration of the text model of model type "gemma3n", alone (gemma3n_text) or in a multimodal
// checkpoint. The towers are not imported. Attention, shared keys and values, and per-layer embeddings are those of
// [Gemma4]. The residual stream has several versions (AltUp): before each layer all of them are predicted from all, the
// layer computes one, and its result corrects the others. A product of low rank runs beside attention (Laurel), and the
// first layers use the largest gates only. Absent keys have the defaults of transformers 5.23; sizes only inside
// text_config.
type Gemma3n struct {
	Gemma4
	Streams      int  // altup_num_inputs: versions of the residual stream
	Active       int  // altup_active_idx: the version that layers compute
	CorrectScale bool // altup_correct_scale: the per-layer embeddings' gates see scaled versions
	LaurelRank   int
	Sparsity     []float64 // by layer: the share of gates that become 0 if gates are normally distributed; 0 = none do
}

const maxLaurelRank = 1 << 14

func init() {
	arch.Register(arch.Arch{
		ModelType:     "gemma3n",
		Aliases:       []string{"gemma3n_text"},
		Architectures: []string{"Gemma3nForConditionalGeneration", "Gemma3nForCausalLM"},
		GGUF:          []gguf.Map{ggufGemma3n},
		Wide:          true,
		Idle: []arch.Idle{
			{Why: "its ropes rotate whole heads", Keys: []string{"partial_rotary_factor"}},
			{Why: "no rope of the type has a context before scaling", Keys: []string{"original_max_position_embeddings"}},
		},
		Docs: arch.Docs{
			Variants: "E2B and E4B: several residual streams, sparse gates, per-layer embeddings, shared keys and values; " +
				"text of multimodal checkpoints",
			Rules: "those of `gemma4`; what mixes the streams stays as it is",
		},
	}, ParseGemma3n)
}

// ParseGemma3n parses the config.json of a gemma3n model.
func ParseGemma3n(data []byte) (*Gemma3n, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &Gemma3n{
		Gemma4: Gemma4{
			Common: config.ParseCommon(top, o, config.Defaults{
				Class: "Gemma3nForConditionalGeneration", Vocab: 262400, Hidden: 2048, Layers: 35, Heads: 8, KVHeads: 2,
				HeadDim: 256,
				Context: 32768, NormEps: 1e-6, Tied: true, BOS: []int32{2}, EOS: []int32{1},
			}),
			Activation:     o.Activation("hidden_activation", config.GELU...),
			Window:         o.Integer("sliding_window", 512, 1, config.MaxContext),
			LogitCap:       o.Limit("final_logit_softcapping", 30),
			PerLayerHidden: o.Integer("hidden_size_per_layer_input", 256, 1, config.MaxHeadDim),
			PerLayerVocab:  o.Integer("vocab_size_per_layer_input", 262144, 1, config.MaxVocab),
		},
		Streams:      o.Integer("altup_num_inputs", 4, 2, config.MaxStreams),
		CorrectScale: o.Bool("altup_correct_scale", true),
		LaurelRank:   o.Integer("laurel_rank", 64, 1, maxLaurelRank),
	}
	m.Active = o.Integer("altup_active_idx", 0, 0, m.Streams-1)
	m.parseLayers(o)
	opts := config.RopeOptions{HeadDim: m.HeadDim, Theta: o.Theta("rope_theta", 1e6)}
	scaling, _ := o.Object("rope_scaling")
	m.Rope = config.ParseLayerRope(o, config.FullAttention, scaling, m.Context, opts)
	opts.Theta = o.Theta("rope_local_base_freq", 1e4)
	m.SlidingRope = config.ParseLayerRope(o, config.SlidingAttention, config.Object{}, m.Context, opts)
	return config.Done(m, o)
}

// parseLayers reads the layers' types, widths and sparsities, and which of them share keys.
func (m *Gemma3n) parseLayers(o config.Object) {
	m.Layer = make([]Gemma4Layer, m.Layers)
	for i, sliding := range config.ParsePattern(o, m.Layers, 5) {
		m.Layer[i] = Gemma4Layer{Sliding: sliding, HeadDim: m.HeadDim, KVHeads: m.KVHeads}
	}
	if raw := o.Keys["intermediate_size"]; len(raw) > 0 && raw[0] == '[' {
		widths := o.Integers("intermediate_size", config.MaxLayers, 1, config.MaxWidth)
		m.perLayer(o, "intermediate_size", len(widths))
		for i := range min(len(widths), m.Layers) {
			m.Layer[i].Intermediate = widths[i]
			m.Intermediate = max(m.Intermediate, widths[i])
		}
	} else {
		m.Intermediate = o.Size("intermediate_size", 16384, config.MaxWidth)
		for i := range m.Layer {
			m.Layer[i].Intermediate = m.Intermediate
		}
	}
	m.Sparsity = make([]float64, m.Layers)
	if o.Has("activation_sparsity_pattern") {
		shares := o.List("activation_sparsity_pattern", config.MaxLayers)
		m.perLayer(o, "activation_sparsity_pattern", len(shares))
		for i := range min(len(shares), m.Layers) {
			share, ok := config.AsNumber(shares[i])
			if !ok || share < 0 || share >= 1 {
				o.Fail("activation_sparsity_pattern", "be numbers from 0 to less than 1")
				break
			}
			m.Sparsity[i] = share
		}
	} else if m.Layers > 10 {
		for i := range 10 {
			m.Sparsity[i] = 0.95
		}
	}
	m.share(o, o.Integer("num_kv_shared_layers", 15, 0, m.Layers), false)
}

// perLayer checks the length of a list of the layers' properties.
func (m *Gemma3n) perLayer(o config.Object, key string, n int) {
	if n != m.Layers {
		o.Fail(key, fmt.Sprintf("have num_hidden_layers = %d elements", m.Layers))
	}
}

// Deviations returns by how many standard deviations a gate of layer i must exceed the mean of its row's gates; the
// others become 0. ok is false if all gates are used.
func (m *Gemma3n) Deviations(i int) (n float64, ok bool) {
	return math.Sqrt2 * math.Erfinv(2*m.Sparsity[i]-1), m.Sparsity[i] > 0
}

func (m *Gemma3n) Facts() config.Facts { return m.FactsAs("gemma3n", m.Rope, m.Table()) }

func (m *Gemma3n) Rules() precision.Rules {
	streams := precision.Rule{Name: "mixes the streams", Of: precision.Quantized, Has: []string{".altup."},
		To: []precision.Target{precision.Source}}
	return precision.Generic(m.Layers, append([]precision.Rule{streams}, gemma4Rules...)...)
}

func (m *Gemma3n) Table() table.Table {
	hidden, perLayer := int64(m.Hidden), int64(m.PerLayerHidden)
	packed := int64(m.Layers) * perLayer
	t := table.Table{ModelType: "gemma3n", Parts: []table.Part{m.TextPart()}}
	t.Add(m.Prefix+"embed_tokens.weight", table.EachToken, int64(m.Vocab), hidden)
	t.Add(m.Prefix+"embed_tokens_per_layer.weight", table.EachToken, int64(m.PerLayerVocab), packed)
	t.Linear(m.Prefix+"per_layer_model_projection", packed, hidden, false, table.Whole)
	t.Norm(m.Prefix+"per_layer_projection_norm", perLayer, false)
	for _, name := range []string{"altup_projections", "altup_unembed_projections"} {
		m.betweenStreams(&t, m.Prefix+name)
	}
	for i, l := range m.Layer {
		layer := m.LayerName(i)
		m.altup(&t, layer+"altup")
		t.Norm(layer+"input_layernorm", hidden, false)
		t.Linear(layer+"laurel.linear_left", int64(m.LaurelRank), hidden, false, table.Whole)
		t.Linear(layer+"laurel.linear_right", hidden, int64(m.LaurelRank), false, table.Whole)
		t.Norm(layer+"laurel.post_laurel_norm", hidden, false)
		m.attend(&t, layer+"self_attn", i, l)
		t.Norm(layer+"post_attention_layernorm", hidden, false)
		t.Norm(layer+"pre_feedforward_layernorm", hidden, false)
		m.AddMLP(&t, layer+"mlp", l.Intermediate)
		t.Norm(layer+"post_feedforward_layernorm", hidden, false)
		t.Linear(layer+"per_layer_input_gate", perLayer, hidden, false, table.Whole)
		t.Linear(layer+"per_layer_projection", hidden, perLayer, false, table.Whole)
		t.Norm(layer+"post_per_layer_input_norm", hidden, false)
	}
	m.AddEnd(&t, false)
	config.DropTowers(&t, "gemma3n")
	return t
}

// betweenStreams adds the projections between the first residual stream and the others. GGUF files stack them.
func (m *Gemma3n) betweenStreams(t *table.Table, name string) {
	hidden, n := int64(m.Hidden), int64(m.Streams-1)
	for i := range n {
		s := t.Add(fmt.Sprintf("%s.%d.weight", name, i), table.Whole, hidden, hidden)
		s.Layout, s.Group = table.Unfused, name
		s.Forms = []table.Form{{
			Layout: table.Stacked, Make: table.Gather, Count: 1, Names: []string{name + ".weight"},
			Shapes: [][]int64{{n, hidden, hidden}},
			Runs:   []table.Run{{Begin: i * hidden * hidden, Count: hidden * hidden, Step: hidden * hidden, Times: 1}},
		}}
	}
}

// altup adds what predicts and corrects the versions of the residual stream.
func (m *Gemma3n) altup(t *table.Table, name string) {
	hidden, n := int64(m.Hidden), int64(m.Streams)
	t.Norm(name+".router_norm", hidden, false)
	t.Linear(name+".modality_router", n, hidden, false, table.Whole)
	t.Linear(name+".prediction_coefs", n*n, n, false, table.Whole)
	t.Linear(name+".correction_coefs", n, n, false, table.Whole)
	if m.CorrectScale {
		t.Add(name+".correct_output_scale", table.Whole, hidden)
	} else {
		t.Drop("not used (altup_correct_scale)", name+".correct_output_scale")
	}
}

// ggufGemma3n is the mapping of gemma3n, which is only imported. The converter stacks the projections between residual
// streams, and fills the embeddings by layer up with zeros to the vocabulary. Files of its first version do not say how
// sparse the layers are: all have the numbers of the published models.
var ggufGemma3n = gguf.Map{
	Architecture: "gemma3n",
	ImportOnly:   true,
	Config:       map[string]any{"model_type": "gemma3n_text", "architectures": []string{"Gemma3nForCausalLM"}},
	Keys: []gguf.Key{
		{Key: "block_count", To: "num_hidden_layers"},
		{Key: "context_length", To: "max_position_embeddings"},
		{Key: "embedding_length", To: "hidden_size"},
		{Key: "feed_forward_length", To: "intermediate_size"},
		{Key: "attention.head_count", To: "num_attention_heads"},
		{Key: "attention.head_count_kv", To: "num_key_value_heads"},
		{Key: "attention.key_length", To: "head_dim"},
		{Key: "attention.layer_norm_rms_epsilon", To: "rms_norm_eps"},
		{Key: "attention.sliding_window", To: "sliding_window"},
		{Key: "attention.shared_kv_layers", To: "num_kv_shared_layers"},
		{Key: "altup.active_idx", To: "altup_active_idx"},
		{Key: "altup.num_inputs", To: "altup_num_inputs"},
		{Key: "embedding_length_per_layer_input", To: "hidden_size_per_layer_input"},
		{Key: "final_logit_softcapping", To: "final_logit_softcapping", Optional: true},
		{Key: "rope.freq_base", To: "rope_theta", Optional: true},
		{Key: "rope.freq_base_swa", To: "rope_local_base_freq", Optional: true},
	},
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.QK, gguf.Values, gguf.MLP, gguf.HeadNorms, gguf.Names(gguf.Op{},
		"attn_norm.weight", "input_layernorm.weight", "post_attention_norm.weight", "post_attention_layernorm.weight",
		"ffn_norm.weight", "pre_feedforward_layernorm.weight", "post_ffw_norm.weight", "post_feedforward_layernorm.weight",
		"inp_gate.weight", "per_layer_input_gate.weight", "proj.weight", "per_layer_projection.weight",
		"post_norm.weight", "post_per_layer_input_norm.weight",
		"altup_router.weight", "altup.modality_router.weight", "altup_router_norm.weight", "altup.router_norm.weight",
		"altup_predict_coef.weight", "altup.prediction_coefs.weight",
		"altup_correct_coef.weight", "altup.correction_coefs.weight",
		"altup_correct_scale.weight", "altup.correct_output_scale",
		"laurel_l.weight", "laurel.linear_left.weight", "laurel_r.weight", "laurel.linear_right.weight",
		"laurel_post_norm.weight", "laurel.post_laurel_norm.weight",
	), []gguf.Tensor{
		{Name: "altup_proj.weight", To: "model.altup_projections.weight"},
		{Name: "altup_unembd_proj.weight", To: "model.altup_unembed_projections.weight"},
		{Name: "per_layer_token_embd.weight", To: "model.embed_tokens_per_layer.weight"},
		{Name: "per_layer_model_proj.weight", To: "model.per_layer_model_projection.weight"},
		{Name: "per_layer_proj_norm.weight", To: "model.per_layer_projection_norm.weight"},
	}),
	Adjust: adjustGemma3n,
}

func adjustGemma3n(c map[string]any, f gguf.File) error {
	layers, err := gguf.Layers(c)
	if err != nil {
		return err
	}
	for _, t := range []struct{ name, key string }{
		{"blk.0.laurel_l.weight", "laurel_rank"}, {"per_layer_token_embd.weight", "vocab_size_per_layer_input"},
	} {
		shape, ok := f.Shape(t.name)
		if !ok || len(shape) != 2 {
			return fmt.Errorf("%w: there is no tensor %s of two dimensions", gguf.ErrMetadata, t.name)
		}
		c[t.key] = shape[0]
	}
	_, c["attention_bias"] = f.Shape("blk.0.attn_q.bias")
	_, c["altup_correct_scale"] = f.Shape("blk.0.altup_correct_scale.weight")
	gguf.SetSliding(c, "gemma3n", f)
	const key = "gemma3n.activation_sparsity_scale"
	v, ok := f.Value(key)
	if !ok {
		return nil
	}
	list, _ := v.([]any)
	shares := make([]float64, layers)
	if len(list) != layers {
		return fmt.Errorf("%w: %s: want %d numbers", gguf.ErrMetadata, key, layers)
	}
	for i, v := range list {
		switch n, ok := v.(json.Number); {
		case ok:
			deviations, err := n.Float64()
			if err != nil {
				return fmt.Errorf("%w: %s: %w", gguf.ErrMetadata, key, err)
			}
			shares[i] = sparsityOf(deviations)
		case v != "-inf": // all gates are used
			return fmt.Errorf("%w: %s: element %d is %v, want a number or -inf", gguf.ErrMetadata, key, i, gguf.Shown(v))
		}
	}
	c["activation_sparsity_pattern"] = shares
	return nil
}

// sparsityOf returns the share of a normal distribution below a number of deviations, a float32. Of the shares that
// have these deviations, it is the one with the fewest digits, as in configurations.
func sparsityOf(deviations float64) float64 {
	share := (1 + math.Erf(deviations/math.Sqrt2)) / 2
	for scale := 10.0; scale < 1e7; scale *= 10 {
		short := math.Round(share*scale) / scale
		if d := math.Sqrt2 * math.Erfinv(2*short-1); math.Abs(d-deviations) < 1e-6*math.Abs(deviations) {
			return short
		}
	}
	return share
}

func (m *Gemma3n) Carried(layer int) int64 {
	return m.Gemma4.Carried(layer) + int64(m.Streams-1)*int64(m.Hidden)
}
