package limits

// CompiledVocabularies bounds the compiled vocabularies in the user's cache.
const CompiledVocabularies = 16

func init() {
	register(Limit{"CompiledVocabularies", "compiled vocabularies in the user's cache", CompiledVocabularies, Count,
		"tokenizer/compiled.TestBounded"})
}
