package table

import (
	"slices"
	"strings"
)

// Canonical prefixes of text models.
const (
	TextPrefix   = "model."
	NestedPrefix = "model.language_model."
)

// HeadAliases are other published names of the output projection.
var HeadAliases = []string{"language_model.lm_head.weight", "model.language_model.lm_head.weight"}

const InvFreq = "a buffer of old checkpoints: computed from the configuration"

// QKV are the ends of the names of the projections that are fused.
var QKV = []string{"q_proj", "k_proj", "v_proj"}

// HeadName is the name of the output head in every table that has one.
const HeadName = "lm_head.weight"

// IsHead reports whether the tensor is the output head of a model whose embedding is not.
func (s Spec) IsHead() bool { return strings.HasSuffix(s.Name, HeadName) }

// IsEmbedding reports whether the tensor is the embedding of tokens.
func (s Spec) IsEmbedding() bool {
	return slices.ContainsFunc(EmbeddingNames, func(end string) bool { return strings.HasSuffix(s.Name, end) })
}

// EmbeddingNames are the ends of the names of the models' embeddings of tokens.
var EmbeddingNames = []string{"embed_tokens.weight", "backbone.embeddings.weight"}
