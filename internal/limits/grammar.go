package limits

// Limits of a grammar: a JSON schema, an EBNF or a regular expression that comes with a request, and what it compiles
// to. They hold what people write many times over.
const (
	// GrammarSource bounds the text of a JSON schema or an EBNF.
	GrammarSource = 1 << 20
	// GrammarRegex bounds the text of a regular expression.
	GrammarRegex = 64 << 10
	// GrammarNesting bounds groups in groups, operators that repeat repetitions, and values in values of a schema.
	GrammarNesting = 256
	// GrammarRules bounds the rules of an EBNF and the definitions that a schema makes.
	GrammarRules = 2000
	// GrammarAlternatives bounds the ways of one alternation that are not the words of one trie.
	GrammarAlternatives = 1000
	// GrammarRepeat bounds a counted repetition.
	GrammarRepeat = 1 << 24
	// GrammarSchemas bounds the schemas that a schema unfolds to: references and combinations can make many of few.
	GrammarSchemas = 50_000
	// GrammarPlaces bounds the program that a grammar compiles to.
	GrammarPlaces = 1 << 18
	// GrammarChecks bounds the steps of checking one instance: the order of an object's properties is searched for.
	GrammarChecks = 1 << 20
	// GrammarUniqueItems bounds the items of an array that must differ: each is kept while the array is written.
	GrammarUniqueItems = 4096
	// GrammarCache bounds the states, transitions and masks that a grammar keeps for one vocabulary. Beyond it they are
	// dropped and computed again.
	GrammarCache = 32 << 20
)

func init() {
	const test = "grammar.TestGrammarLimits"
	register(
		Limit{"GrammarSource", "text of a JSON schema or an EBNF", GrammarSource, Bytes, test},
		Limit{"GrammarRegex", "text of a regular expression", GrammarRegex, Bytes, test},
		Limit{"GrammarNesting", "groups, repetitions and values of a grammar in each other", GrammarNesting, Levels, test},
		Limit{"GrammarRules", "rules and definitions of a grammar", GrammarRules, Count, test},
		Limit{"GrammarAlternatives", "alternatives in one place of a grammar", GrammarAlternatives, Count, test},
		Limit{"GrammarRepeat", "times of a counted repetition", GrammarRepeat, Count, test},
		Limit{"GrammarSchemas", "schemas that a JSON schema unfolds to", GrammarSchemas, Count, test},
		Limit{"GrammarPlaces", "places of a compiled grammar", GrammarPlaces, Count, test},
		Limit{"GrammarChecks", "steps of checking one instance", GrammarChecks, Count, "grammar.TestAcceptsJSONLimit"},
		Limit{"GrammarUniqueItems", "items of an array that must differ", GrammarUniqueItems, Count,
			"grammar.TestUniqueItemsLimit"},
		Limit{"GrammarCache", "states and masks that a grammar keeps for a vocabulary", GrammarCache, Bytes,
			"grammar/automaton.TestCacheLimit"},
	)
}
