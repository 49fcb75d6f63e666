package tokenizer

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/ingotml/ingot/tokenizer/encode"
)

// ErrCompiled reports that a compiled tokenizer cannot be read.
var ErrCompiled = encode.ErrCompiled

// Compile loads like Load, and also returns a form of tokenizer.json that LoadCompiled reads in a fraction of the time:
// the vocabulary and the merges as hash tables, and the rest of the file as it is. It is nil for models other than BPE.
func Compile(tokenizerJSON, tokenizerConfig []byte) (t *Tokenizer, compiled []byte, err error) {
	f, err := readFile(tokenizerJSON, nil)
	if err != nil {
		return nil, nil, err
	}
	if t, err = f.build(tokenizerConfig); err != nil {
		return nil, nil, err
	}
	model := encode.Compile(t.model)
	if model == nil {
		return t, nil, nil
	}
	rest := slices.Concat(tokenizerJSON[:f.modelStart], []byte("null"), tokenizerJSON[f.modelEnd:])
	for len(rest)%8 != 0 { // the tables are aligned
		rest = append(rest, ' ')
	}
	compiled = binary.LittleEndian.AppendUint64(nil, uint64(len(rest)))
	return t, slices.Concat(compiled, rest, model), nil
}

// LoadCompiled returns what Load returned for the tokenizer.json of a compiled form, with a tokenizer_config.json,
// which may be nil. The tokenizer shares compiled, which must not change. It returns ErrCompiled if the form is damaged
// or of another version; it does not compare it with any tokenizer.json.
func LoadCompiled(compiled, tokenizerConfig []byte) (*Tokenizer, error) {
	if len(compiled) < 8 {
		return nil, ErrCompiled
	}
	size, data := binary.LittleEndian.Uint64(compiled), compiled[8:]
	if size > uint64(len(data)) {
		return nil, ErrCompiled
	}
	model, err := encode.Compiled(data[size:])
	if err != nil {
		return nil, err
	}
	f, err := readFile(data[:size], model)
	if err != nil {
		return nil, errors.Join(ErrCompiled, err)
	}
	return f.build(tokenizerConfig)
}
