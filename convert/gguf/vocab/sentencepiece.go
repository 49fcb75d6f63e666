package vocab

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ingotml/ingot/convert/gguf"
)

// sentencePiece makes a tokenizer.model, a protocol buffers message.
// https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto
func (v *vocabulary) sentencePiece() ([]byte, error) {
	var out, trainer, normalizer message
	bytes := false
	unknown, err := v.unknown()
	if err != nil {
		return nil, err
	}
	for i, text := range v.tokens {
		kind := v.kind(i)
		bytes = bytes || kind == typeByte
		if text == "" {
			text, kind = fmt.Sprintf("[EMPTY_%d]", i), typeControl // the name that llama.cpp gives it
		}
		switch {
		case i == unknown:
			kind = typeUnknown
		case kind == typeUnknown: // there is one in SentencePiece; llama.cpp finds the others in the text
			kind = typeControl
		case kind == typeUserDefined: // llama.cpp finds them before it replaces spaces, SentencePiece after
			text = strings.ReplaceAll(text, " ", "▁")
		case kind == typeUnused && v.model == "llama":
			kind = typeNormal // as llama.cpp merges text; the converter fills vocabularies with such tokens
		}
		var piece message
		piece.bytes(1, []byte(text))
		piece.fixed32(2, math.Float32bits(float32(v.scores[i])))
		piece.number(3, uint64(kind))
		out.bytes(1, piece)
	}
	modelType := uint64(2) // BPE
	if v.model == "t5" {
		modelType = 1 // Unigram
	}
	trainer.number(3, modelType)
	if bytes {
		trainer.number(35, 1)
	}
	trainer.number(40, uint64(unknown))
	for name, field := range map[string]int{"bos": 41, "eos": 42} {
		id, err := v.special(name)
		if err != nil {
			return nil, err
		}
		trainer.number(field, uint64(id))
	}
	prefixed, err := v.Bool(prefix+"add_space_prefix", true)
	if err != nil {
		return nil, err
	}
	extra, err := v.Bool(prefix+"remove_extra_whitespaces", v.model == "t5")
	if err != nil {
		return nil, err
	}
	if charsmap, ok := v.Lookup(prefix + "precompiled_charsmap"); ok {
		normalizer.bytes(2, raw(charsmap))
	}
	normalizer.flag(3, prefixed)
	normalizer.flag(4, extra)
	normalizer.flag(5, true)
	out.bytes(2, trainer)
	out.bytes(3, normalizer)
	return out, nil
}

// unknown returns the token that stands for what is not in the vocabulary: the one that the file names, or else the
// first of type UNKNOWN, or else llama.cpp's default. Files have that token with any type.
func (v *vocabulary) unknown() (int, error) {
	if id, err := v.special("unknown"); err != nil || id >= 0 {
		return id, err
	}
	if id := slices.Index(v.types, typeUnknown); id >= 0 {
		return id, nil
	}
	id := 0
	if v.model == "t5" {
		id = 2
	}
	if id >= len(v.tokens) || v.kind(id) == typeByte {
		return 0, fmt.Errorf("%w: %sunknown_token_id is missing and no token is of type 2 (unknown); convert the model again",
			ErrVocabulary, prefix)
	}
	return id, nil
}

// raw returns an array of bytes.
func raw(v gguf.Value) []byte {
	out := make([]byte, v.Len)
	for i := range out {
		n, _ := v.Int(i)
		out[i] = byte(n)
	}
	return out
}

// message is an encoded message.
type message []byte

func (m *message) key(field, wire int) {
	*m = binary.AppendUvarint(*m, uint64(field)<<3|uint64(wire))
}

func (m *message) number(field int, n uint64) {
	m.key(field, 0)
	*m = binary.AppendUvarint(*m, n)
}

func (m *message) flag(field int, on bool) {
	n := uint64(0)
	if on {
		n = 1
	}
	m.number(field, n)
}

func (m *message) fixed32(field int, bits uint32) {
	m.key(field, 5)
	*m = binary.LittleEndian.AppendUint32(*m, bits)
}

func (m *message) bytes(field int, b []byte) {
	m.key(field, 2)
	*m = binary.AppendUvarint(*m, uint64(len(b)))
	*m = append(*m, b...)
}
