package limits

// Limits of a model's tokenizer, which comes with an image.
const (
	// TokenizerNesting bounds values in values of tokenizer.json: as serde_json, which the reference reads it with.
	TokenizerNesting = 128
	// TokenizerValues bounds the values of one part of tokenizer.json, beside its vocabulary and merges.
	TokenizerValues = 1 << 20
	// TokenizerPatternNesting bounds groups and classes in each other in a pattern.
	TokenizerPatternNesting = 100
	// TokenizerPattern bounds a pattern with its classes spelt out: \p{L} alone takes 5 KB.
	TokenizerPattern = 4 << 20
)

func init() {
	const test = "tokenizer.TestTokenizerLimits"
	register(
		Limit{"TokenizerNesting", "values in values of tokenizer.json", TokenizerNesting, Levels, test},
		Limit{"TokenizerValues", "values of one part of tokenizer.json", TokenizerValues, Count, test},
		Limit{"TokenizerPatternNesting", "groups and classes of a tokenizer's pattern in each other", TokenizerPatternNesting,
			Levels, test},
		Limit{"TokenizerPattern", "a tokenizer's pattern with its classes spelt out", TokenizerPattern, Bytes, test},
	)
}
