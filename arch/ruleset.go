package arch

import (
	"slices"
	"strings"

	"github.com/ingotml/ingot/quantize/recipe"
)

// RulesOf returns the precision rules of a model in a rule set, or in the default one if set is "".
func RulesOf(m Model, set recipe.RuleSet) Rules {
	r := m.Rules()
	r.Set = set
	return r
}

const headName = "lm_head.weight"

// IsHead reports whether the tensor is the output head of a model whose embedding is not.
func (s Spec) IsHead() bool { return strings.HasSuffix(s.Name, headName) }

// IsEmbedding reports whether the tensor is the embedding of tokens.
func (s Spec) IsEmbedding() bool {
	return slices.ContainsFunc(embeddingNames, func(end string) bool { return strings.HasSuffix(s.Name, end) })
}

// embeddingNames are the ends of the names of the models' embeddings of tokens.
var embeddingNames = []string{"embed_tokens.weight", "backbone.embeddings.weight"}
