package arch

import (
	"fmt"
	"math"
)

// LongcatFlash is the configuration of model type "longcat_flash": layers of two latent attentions and two feed-forward
// blocks, with experts whose output skips the second attention. Some experts return their input. Absent keys have the
// defaults of transformers 5.23; sizes are required. Layers counts layers, each of which has two KV caches.
type LongcatFlash struct{ LatentDecoder }

func init() {
	register(Arch{
		ModelType:     "longcat_flash",
		Architectures: []string{"LongcatFlashForCausalLM"},
		Parse:         func(config []byte) (Model, error) { return ParseLongcatFlash(config) },
		Docs: Docs{
			Variants: "two attentions in a layer, experts beside the second one, experts that return their input",
			Rules:    "generic, also for experts",
			Draft:    "its own multi-token prediction head (`model.mtp.*`)",
		},
	})
}

// ParseLongcatFlash parses the config.json of a longcat_flash model.
func ParseLongcatFlash(config []byte) (*LongcatFlash, error) {
	top, o, err := openText(config)
	if err != nil {
		return nil, err
	}
	const width = "expert_ffn_hidden_size"
	o = o.called("num_hidden_layers", "num_layers", "intermediate_size", "ffn_hidden_size",
		"moe_intermediate_size", width)
	m := &LongcatFlash{parseLatent(top, o, commonDefaults{
		class: "LongcatFlashForCausalLM", ctx: 131072, eps: 1e-5, bos: []int32{1}, eos: []int32{2},
	}, latentDefaults{query: 1536, kv: 512, nope: 128, rope: 64, value: 128}, ropeOptions{theta: 1e7})}
	l := &m.Latent
	if l.QueryRank == 0 {
		o.fail("q_lora_rank", "be a number")
		return parsed(m, o)
	}
	l.QueryScale = math.Sqrt(float64(m.Hidden) / float64(l.QueryRank))
	l.KVScale = math.Sqrt(float64(m.Hidden) / float64(l.KVRank))
	m.Mixture.parseExperts(o, m.Common, mixtureDefaults{count: 512, perToken: 12, width: 2048}, "moe_intermediate_size")
	m.Mixture.Experts.Identity = o.integer("zero_expert_num", 256, 0, maxExperts)
	m.Mixture.Router = Router{
		Name: "router.classifier", Correction: true, Float32: true, Scaling: o.above("routed_scaling_factor", 6, 0),
	}
	m.check(o)
	return parsed(m, o)
}

// check refuses keys of published configurations that transformers ignores, if they ask for something else.
func (m *LongcatFlash) check(o object) {
	for key, want := range map[string]string{"zero_expert_type": "identity", "attention_method": "MLA"} {
		if o.str(key, want) != want {
			o.fail(key, fmt.Sprintf("be %q", want))
		}
	}
	for key, want := range map[string]bool{
		"mla_scale_q_lora": true, "mla_scale_kv_lora": true, "norm_topk_prob": false, "router_bias": false,
	} {
		if o.boolean(key, want) != want {
			o.fail(key, fmt.Sprintf("be %v", want))
		}
	}
}

// Next returns the name prefix of the multi-token prediction head.
func (m *LongcatFlash) Next() string { return m.Prefix + "mtp." }

// next adds the multi-token prediction head, whose tensors may be absent: a layer of one attention, without experts.
func (m *LongcatFlash) next(t *Table) {
	m.nextPart(t, m.Next())
	layer, hidden := m.Next()+"layers.0.", int64(m.Hidden)
	t.norm(layer+"enorm.m", hidden, false)
	t.norm(layer+"hnorm.m", hidden, false)
	t.linear(layer+"eh_proj", hidden, 2*hidden, false, replicated)
	t.norm(layer+"input_layernorm", hidden, false)
	m.latentAttention(t, layer+"self_attn")
	t.norm(layer+"post_attention_layernorm", hidden, false)
	m.mlp(t, layer+"transformer_layer.mlp", m.Intermediate)
	t.norm(m.Next()+"norm", hidden, false)
	t.drop("a copy of the model's embedding, which the multi-token prediction head shares", m.Next()+"embed_tokens.weight")
}

// State implements [Model]. Each layer has two attentions.
func (m *LongcatFlash) State() []LayerState {
	one := m.LatentDecoder.State()
	return append(one, one...)
}

// Facts implements [Model].
func (m *LongcatFlash) Facts() Facts { return m.facts("longcat_flash", m.Rope, m.Table()) }

// Table implements [Model].
func (m *LongcatFlash) Table() Table {
	hidden := int64(m.Hidden)
	t := m.decoder("longcat_flash", false, func(t *Table, layer string, _ int) {
		for _, half := range []string{"0", "1"} {
			t.norm(layer+"input_layernorm."+half, hidden, false)
			m.latentAttention(t, layer+"self_attn."+half)
			t.norm(layer+"post_attention_layernorm."+half, hidden, false)
			m.mlp(t, layer+"mlps."+half, m.Intermediate)
		}
		t.mixture(layer+"mlp", m.Mixture, m.Hidden)
	})
	m.next(&t)
	for i := range m.Mixture.Experts.Identity {
		for _, part := range []string{"gate_proj", "up_proj"} {
			t.drop("an expert that returns its input has no weights; transformers saves unused ones",
				fmt.Sprintf("%slayers.*.mlp.experts.%d.%s.weight", m.Prefix, m.Mixture.Experts.Count+i, part))
		}
	}
	return t
}
