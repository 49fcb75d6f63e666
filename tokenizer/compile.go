package tokenizer

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/ingotml/ingot/tokenizer/encode"
	"github.com/ingotml/ingot/tokenizer/sentencepiece"
)

// ErrCompiled reports that a compiled tokenizer cannot be read.
var ErrCompiled = encode.ErrCompiled

// Compile loads like Load, and also returns a form of tokenizer.json that LoadCompiled reads in a fraction of the time:
// the vocabulary, its merges or scores as tables, and the rest of the file as it is. It is nil for models other than
// BPE and Unigram.
func Compile(tokenizerJSON, tokenizerConfig []byte) (t *Tokenizer, compiled []byte, err error) {
	f, err := readFile(tokenizerJSON, nil)
	if err != nil {
		return nil, nil, err
	}
	if t, err = f.build(tokenizerConfig); err != nil {
		return nil, nil, err
	}
	rest := slices.Concat(tokenizerJSON[:f.modelStart], []byte("null"), tokenizerJSON[f.modelEnd:])
	return t, joinForm(rest, encode.Compile(t.model)), nil
}

// LoadCompiled returns what Load returned for the tokenizer.json of a compiled form, with a tokenizer_config.json,
// which may be nil. The tokenizer shares compiled, which must not change. It returns ErrCompiled if the form is damaged
// or of another version; it does not compare it with any tokenizer.json.
func LoadCompiled(compiled, tokenizerConfig []byte) (*Tokenizer, error) {
	rest, tables, err := cutForm(compiled)
	if err != nil {
		return nil, err
	}
	model, err := encode.Compiled(tables)
	if err != nil {
		return nil, err
	}
	f, err := readFile(rest, model)
	if err != nil {
		return nil, errors.Join(ErrCompiled, err)
	}
	return f.build(tokenizerConfig)
}

// CompileSentencePiece is Compile for a tokenizer.model.
func CompileSentencePiece(model, tokenizerConfig []byte) (t *Tokenizer, compiled []byte, err error) {
	t, m, err := readSentencePiece(model, tokenizerConfig)
	if err != nil {
		return nil, nil, err
	}
	header, err := m.Header()
	if err != nil {
		return nil, nil, err
	}
	return t, joinForm(header, encode.Compile(t.model)), nil
}

// LoadCompiledSentencePiece is LoadCompiled for a tokenizer.model.
func LoadCompiledSentencePiece(compiled, tokenizerConfig []byte) (*Tokenizer, error) {
	header, tables, err := cutForm(compiled)
	if err != nil {
		return nil, err
	}
	m, err := sentencepiece.ReadHeader(header)
	if err != nil {
		return nil, errors.Join(ErrCompiled, err)
	}
	model, err := encode.CompiledSentencePiece(tables, m)
	if err != nil {
		return nil, err
	}
	return buildSentencePiece(m, model, tokenizerConfig)
}

// joinForm returns a compiled form of JSON and a model's tables; nil if there are no tables.
func joinForm(rest, tables []byte) []byte {
	if tables == nil {
		return nil
	}
	for len(rest)%8 != 0 { // the tables are aligned
		rest = append(rest, ' ')
	}
	return slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(rest))), rest, tables)
}

func cutForm(compiled []byte) (rest, tables []byte, err error) {
	if len(compiled) < 8 {
		return nil, nil, ErrCompiled
	}
	size, data := binary.LittleEndian.Uint64(compiled), compiled[8:]
	if size > uint64(len(data)) {
		return nil, nil, ErrCompiled
	}
	return data[:size], data[size:], nil
}
