package grammar

import "github.com/ingotml/ingot/grammar/vocabulary"

// Vocabulary holds the bytes of all tokens of a model. Build one per tokenizer and share it.
type Vocabulary = vocabulary.Vocabulary

// VocabularyOptions describes what is not in the bytes of tokens.
type VocabularyOptions = vocabulary.Options

// NewVocabulary builds a vocabulary from the bytes of each token id. encode is VocabularyOptions.Encode.
func NewVocabulary(tokens [][]byte, encode func(text string) ([]int32, error)) *Vocabulary {
	return vocabulary.New(tokens, vocabulary.Options{Encode: encode})
}

// NewVocabularyWith builds a vocabulary from the bytes of each token id. Tokens without bytes (special tokens, unused
// ids) are in a mask only where the grammar names them.
func NewVocabularyWith(tokens [][]byte, o VocabularyOptions) *Vocabulary {
	return vocabulary.New(tokens, o)
}

// Words returns the length of a mask over the given number of token ids. Token id is bit id%32 of word id/32.
func Words(tokens int) int { return vocabulary.Words(tokens) }
