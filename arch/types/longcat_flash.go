package types

import (
	"fmt"
	"math"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/table"
)

// LongcatFlash is the configuration of model type "longcat_flash": layers of two latent attentions and two feed-forward
// blocks, with experts whose output skips the second attention. Some experts return their input. Absent keys have the
// defaults of transformers 5.23; sizes are required. Layers counts layers, each of which has two KV caches.
type LongcatFlash struct{ config.LatentDecoder }

func init() {
	arch.Register(arch.Arch{
		ModelType:     "longcat_flash",
		Architectures: []string{"LongcatFlashForCausalLM"},
		Published:     table.Published{Experts: table.PerExpert},
		Idle: []arch.Idle{
			{Why: "attention has head sizes of its own", Keys: []string{"head_dim"}},
		},
		Docs: arch.Docs{
			Variants: "two attentions in a layer, experts beside the second one, experts that return their input",
			Rules:    "generic, also for experts",
			Draft:    "its own multi-token prediction head (`model.mtp.*`)",
		},
	}, ParseLongcatFlash)
}

// ParseLongcatFlash parses the config.json of a longcat_flash model.
func ParseLongcatFlash(data []byte) (*LongcatFlash, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	const width = "expert_ffn_hidden_size"
	o = o.Renamed("num_hidden_layers", "num_layers", "intermediate_size", "ffn_hidden_size",
		"moe_intermediate_size", width)
	m := &LongcatFlash{config.ParseLatent(top, o, config.Defaults{
		Class: "LongcatFlashForCausalLM", Context: 131072, NormEps: 1e-5, BOS: []int32{1}, EOS: []int32{2},
	}, config.LatentDefaults{Query: 1536, Kv: 512, Nope: 128, Rope: 64, Value: 128}, config.RopeOptions{Theta: 1e7})}
	l := &m.Latent
	if l.QueryRank == 0 {
		o.Fail("q_lora_rank", "be a number")
		return config.Done(m, o)
	}
	l.QueryScale = math.Sqrt(float64(m.Hidden) / float64(l.QueryRank))
	l.KVScale = math.Sqrt(float64(m.Hidden) / float64(l.KVRank))
	m.Mixture.ReadExperts(o, m.Common, config.MixtureDefaults{Count: 512, PerToken: 12, Width: 2048},
		"moe_intermediate_size")
	m.Mixture.Experts.Identity = o.Integer("zero_expert_num", 256, 0, config.MaxExperts)
	m.Mixture.Router = config.Router{
		Name: "router.classifier", Correction: true, Float32: true, Scaling: o.Above("routed_scaling_factor", 6, 0),
	}
	m.check(o)
	return config.Done(m, o)
}

// check refuses keys of published configurations that transformers ignores, if they ask for something else.
func (m *LongcatFlash) check(o config.Object) {
	for key, want := range map[string]string{"zero_expert_type": "identity", "attention_method": "MLA"} {
		if o.String(key, want) != want {
			o.Fail(key, fmt.Sprintf("be %q", want))
		}
	}
	for key, want := range map[string]bool{
		"mla_scale_q_lora": true, "mla_scale_kv_lora": true, "norm_topk_prob": false, "router_bias": false,
	} {
		if o.Bool(key, want) != want {
			o.Fail(key, fmt.Sprintf("be %v", want))
		}
	}
}

// Next returns the name prefix of the multi-token prediction head.
func (m *LongcatFlash) Next() string { return m.Prefix + "mtp." }

// next adds the multi-token prediction head, whose tensors may be absent: a layer of one attention, without experts.
func (m *LongcatFlash) next(t *table.Table) {
	m.AddNextPart(t, m.Next())
	layer, hidden := m.Next()+"layers.0.", int64(m.Hidden)
	t.Norm(layer+"enorm.m", hidden, false)
	t.Norm(layer+"hnorm.m", hidden, false)
	t.Linear(layer+"eh_proj", hidden, 2*hidden, false, table.Whole)
	t.Norm(layer+"input_layernorm", hidden, false)
	m.AddLatentAttention(t, layer+"self_attn")
	t.Norm(layer+"post_attention_layernorm", hidden, false)
	m.AddMLP(t, layer+"transformer_layer.mlp", m.Intermediate)
	t.Norm(m.Next()+"norm", hidden, false)
	t.Drop("a copy of the model's embedding, which the multi-token prediction head shares", m.Next()+"embed_tokens.weight")
}

// State implements [arch.Model]. Each layer has two attentions.
func (m *LongcatFlash) State() []config.LayerState {
	one := m.LatentDecoder.State()
	return append(one, one...)
}

func (m *LongcatFlash) Facts() config.Facts { return m.FactsAs("longcat_flash", m.Rope, m.Table()) }

func (m *LongcatFlash) Table() table.Table {
	hidden := int64(m.Hidden)
	t := m.TableOf("longcat_flash", false, func(t *table.Table, layer string, _ int) {
		for _, half := range []string{"0", "1"} {
			t.Norm(layer+"input_layernorm."+half, hidden, false)
			m.AddLatentAttention(t, layer+"self_attn."+half)
			t.Norm(layer+"post_attention_layernorm."+half, hidden, false)
			m.AddMLP(t, layer+"mlps."+half, m.Intermediate)
		}
		m.Mixture.AddTo(t, layer+"mlp", m.Hidden)
	})
	m.next(&t)
	for i := range m.Mixture.Experts.Identity {
		for _, part := range []string{"gate_proj", "up_proj"} {
			t.Drop("an expert that returns its input has no weights; transformers saves unused ones",
				fmt.Sprintf("%slayers.*.mlp.experts.%d.%s.weight", m.Prefix, m.Mixture.Experts.Count+i, part))
		}
	}
	return t
}
