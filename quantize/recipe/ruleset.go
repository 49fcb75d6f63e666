package recipe

import (
	"fmt"
	"slices"
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

// ParseRuleSet returns the rule set of a name. "" is the default set.
func ParseRuleSet(name string) (RuleSet, error) {
	set := RuleSet(name)
	if name != "" && !slices.Contains(RuleSets(), set) {
		return "", fmt.Errorf("unknown rule set %q, want one of %v", name, RuleSets())
	}
	return set, nil
}
