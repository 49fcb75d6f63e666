// Package sentencepiece reads tokenizer.model files, which are SentencePiece protocol buffers messages
// (sentencepiece_model.proto).
//
// Contract: a Model is plain data that has been checked: Read refuses what is inconsistent (ErrInvalid) or not
// implemented (ErrUnsupported). Packages encode, decode and normalize make their parts of it.
package sentencepiece

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/tokenizer/chars"
	"github.com/ingotml/ingot/tokenizer/fault"
	"github.com/ingotml/ingot/tokenizer/jsonfile"
)

// Types of pieces.
const (
	Normal      = 1
	Unknown     = 2
	Control     = 3
	UserDefined = 4
	Unused      = 5
	Byte        = 6
)

// Model is a parsed SentencePiece model file.
type Model struct {
	Pieces                            []Piece  `json:"-"` // nil if the vocabulary is compiled
	Size                              int      // number of pieces
	Marked                            []Marked // the pieces that are not Normal, by id
	Kind                              uint64   // 1: Unigram, 2: BPE
	ByteFallback, suffix              bool
	Unk, Bos, Eos                     int32
	UnkSurface                        string
	Charsmap                          []byte
	DummyPrefix, RemoveExtra, Escapes bool
	denormalizes                      bool
}

// Piece is a token of the vocabulary.
type Piece struct {
	Text  string
	Score float32
	Kind  uint64
}

// Marked is a piece with a type of its own.
type Marked struct {
	ID   int32
	Text string
	Kind uint64
}

// Read parses a tokenizer.model.
func Read(data []byte) (*Model, error) {
	m := &Model{Kind: 1, Unk: -1, Bos: 1, Eos: 2, UnkSurface: " \u2047 ", DummyPrefix: true, RemoveExtra: true,
		Escapes: true}
	err := protoFields(data, func(number int, v protoValue) error {
		switch number {
		case 1:
			p, err := readPiece(v.bytes)
			m.Pieces = append(m.Pieces, p)
			return err
		case 2:
			return protoFields(v.bytes, m.readTrainer)
		case 3:
			return protoFields(v.bytes, m.readNormalizer)
		case 5:
			return protoFields(v.bytes, func(number int, v protoValue) error {
				m.denormalizes = m.denormalizes || number == 2 && len(v.bytes) > 0
				return nil
			})
		}
		return nil
	})
	if err == nil {
		err = m.check()
	}
	if err != nil {
		return nil, fault.Errorf(fault.ErrInvalid, "tokenizer.model: %v", err)
	}
	unsupported := func(format string, args ...any) error {
		return fault.Errorf(fault.ErrUnsupported, "tokenizer.model: "+format, args...)
	}
	switch {
	case m.Kind != 1 && m.Kind != 2:
		return nil, unsupported("model type %d is neither Unigram nor BPE", m.Kind)
	case m.suffix:
		return nil, unsupported("treat_whitespace_as_suffix is not supported")
	case m.denormalizes:
		return nil, unsupported("a denormalizer is not supported")
	}
	return m, nil
}

func readPiece(data []byte) (Piece, error) {
	p := Piece{Kind: Normal}
	err := protoFields(data, func(number int, v protoValue) error {
		switch number {
		case 1:
			p.Text = string(v.bytes)
		case 2:
			p.Score = v.float()
		case 3:
			p.Kind = v.number
		}
		return nil
	})
	return p, err
}

func (m *Model) readTrainer(number int, v protoValue) error {
	switch number {
	case 3:
		m.Kind = v.number
	case 24:
		m.suffix = v.number != 0
	case 35:
		m.ByteFallback = v.number != 0
	case 41:
		m.Bos = int32(v.number)
	case 42:
		m.Eos = int32(v.number)
	case 44:
		if m.UnkSurface = chars.ValidText(string(v.bytes)); len(m.UnkSurface) > limits.TokenBytes {
			return fmt.Errorf("unk_surface has %d bytes; at most %d", len(m.UnkSurface), limits.TokenBytes)
		}
	}
	return nil
}

func (m *Model) readNormalizer(number int, v protoValue) error {
	switch number {
	case 2:
		m.Charsmap = slices.Clone(v.bytes)
	case 3:
		m.DummyPrefix = v.number != 0
	case 4:
		m.RemoveExtra = v.number != 0
	case 5:
		m.Escapes = v.number != 0
	}
	return nil
}

// check performs the checks that SentencePiece performs when it loads a model.
func (m *Model) check() error {
	if m.Size = len(m.Pieces); m.Size > jsonfile.MaxID {
		return fmt.Errorf("%d pieces", m.Size)
	}
	bytes := 0
	seen := make(map[string]bool, len(m.Pieces))
	for i, p := range m.Pieces {
		switch {
		case len(p.Text) > limits.TokenBytes:
			return fmt.Errorf("token %d has %d bytes; at most %d", i, len(p.Text), limits.TokenBytes)
		case !isText(p.Text):
			return fmt.Errorf("piece %d is empty or not valid text", i)
		case seen[p.Text]:
			return fmt.Errorf("piece %d, %q, is a duplicate", i, p.Text)
		case math.IsNaN(float64(p.Score)) || math.IsInf(float64(p.Score), 0):
			return fmt.Errorf("piece %d, %q, has no finite score", i, p.Text)
		case p.Kind < Normal || p.Kind > Byte:
			return fmt.Errorf("piece %d, %q, has the unknown type %d", i, p.Text, p.Kind)
		case p.Kind == Unknown && m.Unk >= 0:
			return fmt.Errorf("pieces %d and %d are both of type UNKNOWN", m.Unk, i)
		case p.Kind == Unknown:
			m.Unk = int32(i)
		case p.Kind == Byte:
			if _, ok := chars.ByteToken(p.Text); !ok || !m.ByteFallback {
				return fmt.Errorf("piece %d, %q, is an unexpected byte piece", i, p.Text)
			}
			bytes++
		}
		seen[p.Text] = true
		if p.Kind != Normal {
			m.Marked = append(m.Marked, Marked{int32(i), p.Text, p.Kind})
		}
	}
	if m.Unk < 0 {
		return fmt.Errorf("no piece is of type UNKNOWN")
	}
	if m.ByteFallback && bytes != 256 {
		return fmt.Errorf("%d byte pieces, not 256", bytes)
	}
	return nil
}

// isText reports whether a piece can have this text.
func isText(s string) bool {
	return s != "" && len(s) <= limits.TokenBytes && utf8.ValidString(s) && !strings.ContainsRune(s, 0)
}

// IsUser reports whether a symbol is a user-defined piece. These never merge.
func (m *Model) IsUser(id int32) bool {
	return int(id) < len(m.Pieces) && m.Pieces[id].Kind == UserDefined
}
