package limits

// Limits of a model's tokenizer, which comes with an image.
const (
	// TokenizerNesting bounds values in values of tokenizer.json: as serde_json, which the reference reads it with.
	TokenizerNesting = 128
	// TokenizerValues bounds the values of one part of tokenizer.json, beside its vocabulary and merges.
	TokenizerValues = 1 << 20
	// TokenBytes bounds a token, as the vocabulary has it: published ones have at most some hundred bytes.
	TokenBytes = 2 << 10
	// TokenAffix bounds what BPE puts before or after characters.
	TokenAffix = 64
	// TokenizerSteps bounds the steps of a normalizer, a pre-tokenizer or a decoder. Published ones have up to ten.
	TokenizerSteps = 64
	// TokenizerSpecial bounds the special tokens that are put around a text.
	TokenizerSpecial = 256
	// NormalizedTimes and NormalizedMore bound a normalized text, in times of the text and in bytes beyond.
	NormalizedTimes = 4
	NormalizedMore  = 64 << 10
	// DecodedTimes bounds how many times as long as its tokens a decoder makes a text.
	DecodedTimes = 8
	// EncodeWork and EncodeWorkPerByte bound the work of encoding one text, in units of package work.
	EncodeWork        = 64 << 20
	EncodeWorkPerByte = 256
	// TokenizerPatternNesting bounds groups and classes in each other in a pattern.
	TokenizerPatternNesting = 100
	// TokenizerPattern bounds a pattern with its classes spelt out: \p{L} alone takes 5 KB.
	TokenizerPattern = 4 << 20
)

func init() {
	const test, encode = "tokenizer.TestTokenizerLimits", "tokenizer.TestEncodeLimits"
	register(
		Limit{"TokenBytes", "token of a vocabulary", TokenBytes, Bytes, test},
		Limit{"TokenAffix", "what BPE puts before or after characters", TokenAffix, Bytes, test},
		Limit{"TokenizerSteps", "steps of a normalizer, a pre-tokenizer or a decoder", TokenizerSteps, Count, test},
		Limit{"TokenizerSpecial", "special tokens that are put around a text", TokenizerSpecial, Count, test},
		Limit{"DecodedTimes", "times its tokens that a decoder makes a text", DecodedTimes, Count, test},
		Limit{"NormalizedTimes", "times a text that its normalized form has", NormalizedTimes, Count, encode},
		Limit{"NormalizedMore", "normalized text beyond that", NormalizedMore, Bytes, encode},
		Limit{"EncodeWork", "work of encoding a text, in nanoseconds or so", EncodeWork, Count, encode},
		Limit{"EncodeWorkPerByte", "more such work for each byte of the text", EncodeWorkPerByte, Count, encode},
		Limit{"TokenizerNesting", "values in values of tokenizer.json", TokenizerNesting, Levels, test},
		Limit{"TokenizerValues", "values of one part of tokenizer.json", TokenizerValues, Count, test},
		Limit{"TokenizerPatternNesting", "groups and classes of a tokenizer's pattern in each other", TokenizerPatternNesting,
			Levels, test},
		Limit{"TokenizerPattern", "a tokenizer's pattern with its classes spelt out", TokenizerPattern, Bytes, test},
	)
}
