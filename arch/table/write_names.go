package table

import (
	"slices"
	"strings"
)

// BlockSparse are the names that Mixtral's publishers gave to experts, and those of mlx-lm for them.
var BlockSparse = [][]string{
	{".mlp.", ".block_sparse_moe."},
	{".mlp.", ".block_sparse_moe.", ".gate_proj.", ".w1.", ".up_proj.", ".w3.", ".down_proj.", ".w2."},
}

// styleNames are a type's names in checkpoints: for transformers, and for mlx-lm.
type styleNames struct{ huggingFace, Mlx []string }

// PublishedNames are the names that types have in checkpoints, where these are not the canonical ones: for
// transformers, and for mlx-lm, which has its own. Each list is of pairs, from canonical names.
var PublishedNames = map[string]styleNames{
	"llama4":      {llama4Names, llama4Names},
	"llama4_text": {llama4Names, llama4Names},
	"mixtral":     {BlockSparse[1], BlockSparse[0]},
	"phimoe":      {BlockSparse[1], BlockSparse[0]},
	"phi-msft":    {[]string{"model.", "transformer."}, []string{"model.", "transformer."}},
	"minimax_m2":  {slices.Concat(minimaxBias, BlockSparse[1]), slices.Concat(minimaxBias, BlockSparse[0])},
	"granitemoe": {
		[]string{
			".mlp.gate.", ".block_sparse_moe.router.layer.",
			".mlp.experts.gate_up_proj", ".block_sparse_moe.input_linear.weight",
			".mlp.experts.down_proj", ".block_sparse_moe.output_linear.weight",
		},
		[]string{".mlp.gate.", ".block_sparse_moe.router.layer.", ".mlp.", ".block_sparse_moe."},
	},
	"granitemoehybrid": {
		[]string{
			".block_sparse_moe.gate.", ".block_sparse_moe.router.layer.",
			".block_sparse_moe.experts.gate_up_proj", ".block_sparse_moe.input_linear.weight",
			".block_sparse_moe.experts.down_proj", ".block_sparse_moe.output_linear.weight",
			".shared_mlp.down_proj.", ".shared_mlp.output_linear.",
		},
		[]string{
			".block_sparse_moe.gate.", ".block_sparse_moe.router.layer.",
			".shared_mlp.down_proj.", ".shared_mlp.output_linear.",
		},
	},
	"ernie4_5_moe":   {ernieBias, ernieBias},
	"hunyuan_v1_moe": {hunYuanNames, hunYuanNames},
	"afmoe":          {afmoeNames, slices.Concat(afmoeNames, expertsOfMLX)},
	"dots1":          {nil, expertsOfMLX},
	"mimo_v2_flash":  {mimoSinks, mimoSinks},
	// mlx-lm renames weights only, and no scales.
	"lfm2_moe": {nil, []string{
		".feed_forward.w1.", ".feed_forward.gate_proj.", ".feed_forward.w2.", ".feed_forward.down_proj.",
		".feed_forward.w3.", ".feed_forward.up_proj.",
	}},
	"laguna": {
		[]string{
			".mlp.gate.e_score_correction_bias", ".mlp.experts.e_score_correction_bias",
			".mlp.shared_experts.", ".mlp.shared_expert.",
		},
		[]string{".mlp.gate.weight", ".mlp.gate.proj.weight", ".mlp.shared_experts.", ".mlp.shared_expert."},
	},
}

var (
	llama4Names = []string{
		".mlp.gate.", ".feed_forward.router.", ".mlp.shared_experts.", ".feed_forward.shared_expert.",
		".mlp.switch_mlp.", ".feed_forward.experts.", ".mlp.", ".feed_forward.",
	}
	mimoSinks    = []string{".self_attn.sinks", ".self_attn.attention_sink_bias"}
	minimaxBias  = []string{".mlp.gate.e_score_correction_bias", ".block_sparse_moe.e_score_correction_bias"}
	ernieBias    = []string{".mlp.gate.e_score_correction_bias", publishedRow}
	hunYuanNames = []string{".mlp.gate.", ".mlp.gate.wg.", ".mlp.shared_experts.", ".mlp.shared_mlp."}
	afmoeNames   = []string{
		".mlp.gate.e_score_correction_bias", ".mlp.expert_bias", ".mlp.gate.weight", ".mlp.router.gate.weight",
	}
	// expertsOfMLX are stacked experts under the name of fused ones.
	expertsOfMLX = []string{".mlp.switch_mlp.", ".mlp.experts."}
)

// publishedRow is the end of the name of a vector that is published as a row.
const publishedRow = ".mlp.moe_statics.e_score_correction_bias"

// publishedName returns the name that a tensor has in checkpoints of a style.
func publishedName(canonical string, o WriteOptions) string {
	names := PublishedNames[o.ModelType]
	switch o.Style {
	case HuggingFace:
		return strings.NewReplacer(names.huggingFace...).Replace(canonical)
	case MLX:
		return strings.NewReplacer(names.Mlx...).Replace(canonical)
	}
	return canonical
}

// turnsExperts reports whether the experts of a type are published fused and transposed.
func turnsExperts(modelType string) bool { return modelType == "llama4" || modelType == "llama4_text" }
