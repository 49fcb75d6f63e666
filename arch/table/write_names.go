package table

import "strings"

// BlockSparse are the names that Mixtral's publishers gave to experts, and those of mlx-lm for them.
var BlockSparse = [][]string{
	{".mlp.", ".block_sparse_moe."},
	{".mlp.", ".block_sparse_moe.", ".gate_proj.", ".w1.", ".up_proj.", ".w3.", ".down_proj.", ".w2."},
}

// ExpertsOfMLX are stacked experts under the name of fused ones.
var ExpertsOfMLX = []string{".mlp.switch_mlp.", ".mlp.experts."}

// PublishedRow is the end of the name of a vector that is published as a row.
const PublishedRow = ".mlp.moe_statics.e_score_correction_bias"

// publishedName returns the name that a tensor has in checkpoints of a style.
func publishedName(canonical string, o WriteOptions) string {
	switch o.Style {
	case HuggingFace:
		return strings.NewReplacer(o.Published.HuggingFace...).Replace(canonical)
	case MLX:
		return strings.NewReplacer(o.Published.MLX...).Replace(canonical)
	}
	return canonical
}
