package vocab

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/ingotml/ingot/convert/gguf"
)

// sentencePiece makes a tokenizer.model, a protocol buffers message.
// https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto
func (v *vocabulary) sentencePiece() ([]byte, error) {
	if v.scores == nil {
		return nil, fmt.Errorf("%w: %sscores is missing", ErrVocabulary, prefix)
	}
	var out, trainer, normalizer message
	bytes := false
	for i, text := range v.tokens {
		kind := v.kind(i)
		if kind < typeNormal || kind > typeByte {
			return nil, fmt.Errorf("%w: token %d is of type %d, which does not exist", ErrVocabulary, i, kind)
		}
		bytes = bytes || kind == typeByte
		switch {
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
	for name, field := range map[string]int{"unknown": 40, "bos": 41, "eos": 42} {
		id := int64(-1)
		if _, ok, err := v.token(name); err != nil {
			return nil, err
		} else if ok {
			id, _ = v.Int(prefix + name + "_token_id")
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
