package arch

import (
	"fmt"
	"slices"
	"strings"
)

// RuleSet is a version of the precision rules of all models. The types that a set chooses never change, so an image can
// be made again by naming the set that it was made with.
type RuleSet string

// The rule sets.
const (
	RuleSet1 RuleSet = "rules-1" // embeddings keep their type; sensitive projections get 8 bits
	RuleSet2 RuleSet = "rules-2" // as rules-1, but embeddings get int8

	DefaultRuleSet = RuleSet2
)

// RuleSets lists all rule sets, the oldest first.
func RuleSets() []RuleSet { return []RuleSet{RuleSet1, RuleSet2} }

// RulesOf returns the precision rules of a model in a rule set, or in the default one if set is "".
func RulesOf(m Model, set RuleSet) Rules {
	r := m.Rules()
	r.Set = set
	return r
}

// ParseRuleSet returns the rule set of a name. "" is the default set.
func ParseRuleSet(name string) (RuleSet, error) {
	set := RuleSet(name)
	if name != "" && !slices.Contains(RuleSets(), set) {
		return "", fmt.Errorf("unknown rule set %q, want one of %v", name, RuleSets())
	}
	return set, nil
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
