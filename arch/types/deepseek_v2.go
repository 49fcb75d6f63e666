package types

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/arch/table"
)

// DeepseekV2 is the configuration of model type "deepseek_v2" (DeepSeek V2, V2 Lite and V2.5): latent attention, and
// experts that a softmax router chooses, of all or by groups. Absent keys have the defaults of transformers 5.23; sizes
// are required.
type DeepseekV2 struct{ config.LatentDecoder }

func init() {
	arch.Register(arch.Arch{
		ModelType:     "deepseek_v2",
		Latent:        true,
		Architectures: []string{"DeepseekV2ForCausalLM"},
		GGUF:          []gguf.Map{ggufDeepseek2},
		Published:     table.Published{Experts: table.PerExpert},
		Wide:          true,
		Idle: []arch.Idle{
			{Why: "attention has head sizes of its own", Keys: []string{"head_dim"}},
			{Why: "the router has no groups", Keys: []string{"n_group", "topk_group"}},
		},
		Docs: arch.Docs{
			Variants: "low-rank or single query projection, groups of experts, shared experts, dense first layers, yarn, biases",
			Rules:    "generic, also for experts",
		},
	}, ParseDeepseekV2)
}

// ParseDeepseekV2 parses the config.json of a deepseek_v2 model.
func ParseDeepseekV2(data []byte) (*DeepseekV2, error) {
	top, o, err := config.OpenText(data)
	if err != nil {
		return nil, err
	}
	m := &DeepseekV2{config.ParseLatent(top, o, config.Defaults{
		Class: "DeepseekV2ForCausalLM", Context: 2048, NormEps: 1e-6, BOS: []int32{1}, EOS: []int32{2},
	}, config.LatentDefaults{Query: 1536, Kv: 512, Nope: 128, Rope: 64, Value: 128}, config.RopeOptions{})}
	m.MLPBias = o.Bool("mlp_bias", false)
	m.Mixture.ReadExperts(o, m.Common, config.MixtureDefaults{Count: 64, Width: 1407}, "moe_intermediate_size")
	m.Mixture.Router = config.Router{Float32: true, Scaling: o.Above("routed_scaling_factor", 1, 0)}
	m.Mixture.Shared = o.Integer("n_shared_experts", 2, 0, 64) * m.Mixture.Experts.Intermediate
	m.Mixture.SharedBias = m.MLPBias
	m.groups(o)
	m.Mixture.ReadDense(o, 0)
	o.CheckLayerFrequency()
	if m.Mixture.Experts.NormTopK {
		// transformers ignores the key; the publisher's code then leaves out routed_scaling_factor.
		o.Fail("norm_topk_prob", "be false")
	}
	if f := o.String("scoring_func", "softmax"); f != "softmax" {
		o.Fail("scoring_func", `be "softmax"`)
	}
	return config.Done(m, o)
}

// groups reads how the router chooses experts: of all, or of the groups whose best expert has a high score.
func (m *DeepseekV2) groups(o config.Object) {
	r := &m.Mixture.Router
	switch o.String("topk_method", "greedy") {
	case "greedy":
		r.Groups, r.TopGroups = 1, 1
	case "group_limited_greedy":
		r.Groups, r.TopGroups = o.Required("n_group", 1, config.MaxExperts), o.Required("topk_group", 1, config.MaxExperts)
		r.GroupBest = 1
	default:
		r.Groups, r.TopGroups = 1, 1
		o.Fail("topk_method", `be "greedy" or "group_limited_greedy"`)
	}
	r.Check(o, m.Mixture.Experts)
}

func (m *DeepseekV2) Facts() config.Facts { return m.FactsAs("deepseek_v2", m.Rope, m.Table()) }

func (m *DeepseekV2) Table() table.Table { return m.TableAs("deepseek_v2") }

// ggufDeepseek2 is the mapping of models with latent attention: DeepSeek V2 and V3, Kimi K2, GLM-4.7-Flash and Youtu.
// kv_b_proj is split into k_b, transposed, and v_b, as mlx-lm has it too. Older files have it whole.
var ggufDeepseek2 = gguf.Map{
	Architecture: "deepseek2",
	Config:       map[string]any{"num_nextn_predict_layers": 0, "q_lora_rank": nil},
	Limits:       gguf.Limits{Biases: gguf.NoBiases},
	Keys: gguf.Keys(
		gguf.Key{Key: "leading_dense_block_count", To: "first_k_dense_replace", Optional: true},
		gguf.Key{Key: "expert_used_count", To: "num_experts_per_tok", Field: "Experts.PerToken", Optional: true},
		gguf.Key{
			Key: "expert_feed_forward_length", To: "moe_intermediate_size", Field: "Experts.Intermediate", Optional: true,
		},
		gguf.Key{Key: "expert_count", To: "n_routed_experts", Field: "Experts.Count", Optional: true},
		gguf.Key{Key: "expert_shared_count", To: "n_shared_experts", Optional: true},
		gguf.Key{Key: "expert_group_count", To: "n_group", Field: "Router.Groups", Optional: true},
		gguf.Key{Key: "expert_group_used_count", To: "topk_group", Field: "Router.TopGroups", Optional: true},
		gguf.Key{Key: "expert_weights_scale", To: "routed_scaling_factor", Field: "Router.Scaling", Optional: true},
		gguf.Key{Key: "expert_weights_norm", To: "norm_topk_prob", Field: "Experts.NormTopK", Optional: true},
		gguf.Key{Key: "attention.q_lora_rank", To: "q_lora_rank", Field: "Latent.QueryRank", Optional: true},
		gguf.Key{Key: "attention.kv_lora_rank", To: "kv_lora_rank", Field: "Latent.KVRank"},
		gguf.Key{Key: "attention.value_length_mla", To: "v_head_dim", Field: "Latent.ValueDim"},
		gguf.Key{Key: "rope.dimension_count", To: "qk_rope_head_dim", Field: "Latent.RopeDim"},
	),
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.Latent(), gguf.MoE, gguf.SharedExperts),
	Next: []gguf.Tensor{{
		Name: "blk.*" + gguf.AnyTensor, Why: "a head for tokens after the next, which is not imported from GGUF files",
	}},
	Adjust:   adjustDeepseek2,
	Split:    gguf.SplitLatent,
	Also:     gguf.AlsoLatent,
	Refuse:   gguf.RefuseLatent,
	LogScale: 0.1,
	Pre: func(m gguf.Model) string {
		if _, ok := m.(*Glm4MoeLite); ok {
			return "glm4"
		}
		return "default"
	},
}

// latentClass returns the model type and the class of a file. Of the models that share the architecture, those without
// experts and those with other routers differ; GLM is known by its tokenizer.
func latentClass(f gguf.File) (modelType, class string, err error) {
	const key = "deepseek2.expert_gating_func"
	gating, ok := f.Value(key)
	_, corrects := f.Shape("blk.1.exp_probs_b.bias")
	_, experts := f.Value("deepseek2.expert_count")
	pre, _ := f.Value("tokenizer.ggml.pre")
	isGLM := pre == "glm4" || pre == "chatglm-bpe"
	switch {
	case ok && gating != json.Number("0") && gating != json.Number("1") && gating != json.Number("2"):
		return "", "", fmt.Errorf("%w: %s = %v, want 1 (softmax) or 2 (sigmoid)", gguf.ErrMetadata, key, gguf.Shown(gating))
	case isGLM && gating == json.Number("1"):
		return "", "", fmt.Errorf("%w: %s = 1 (softmax), want 2 (sigmoid) for GLM", gguf.ErrMetadata, key)
	case isGLM:
		return "glm4_moe_lite", "Glm4MoeLiteForCausalLM", nil
	case !experts:
		return "youtu", "YoutuForCausalLM", nil
	case gating == json.Number("2") || corrects:
		return "deepseek_v3", "DeepseekV3ForCausalLM", nil
	}
	return "deepseek_v2", "DeepseekV2ForCausalLM", nil
}

func adjustDeepseek2(c map[string]any, f gguf.File) error {
	modelType, class, err := latentClass(f)
	if err != nil {
		return err
	}
	c["model_type"], c["architectures"] = modelType, []string{class}
	if groups, ok := c["n_group"]; modelType == "deepseek_v2" && ok && groups != json.Number("1") {
		c["topk_method"] = "group_limited_greedy"
	}
	if err := gguf.SetLatent(c, "deepseek2", f); err != nil || modelType == "youtu" {
		return err
	}
	return gguf.SetSparse(c, f)
}
