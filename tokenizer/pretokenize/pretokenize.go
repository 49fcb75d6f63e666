// Package pretokenize splits text into the pieces that the model encodes one by one.
//
// Contract: pieces come in order and none is empty. A PreTokenizer is immutable after RawBytes and safe for concurrent
// use.
package pretokenize

import (
	"slices"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/work"
	"github.com/ingotml/ingot/tokenizer/chars"
	"github.com/ingotml/ingot/tokenizer/fault"
	"github.com/ingotml/ingot/tokenizer/jsonfile"
	"github.com/ingotml/ingot/tokenizer/pattern"
)

// PreTokenizer is one step that splits text into pieces.
type PreTokenizer interface {
	// Pieces calls emit for each piece; none is empty. first reports whether s begins the text passed to Encode.
	Pieces(m *work.Meter, s string, first bool, emit Emit) error
}

type Emit func(piece string, first bool) error

// New returns the steps of a pre-tokenizer.
func New(n *jsonfile.Node) (Steps, error) {
	c, err := jsonfile.AsComponent(n, "pre_tokenizer")
	if err != nil {
		return nil, err
	}
	steps, err := preTokenizerSteps(nil, c)
	if err == nil {
		err = c.CheckSteps(len(steps))
	}
	return steps, err
}

// preTokenizerSteps appends the steps of c and flattens sequences.
func preTokenizerSteps(steps Steps, c jsonfile.Component) (Steps, error) {
	switch c.Name {
	case "ByteLevel":
		p := &byteLevel{useRegex: true}
		var err error
		if p.addPrefixSpace, err = c.Flag("add_prefix_space"); err != nil {
			return nil, err
		}
		if _, err := c.Flag("trim_offsets"); err != nil { // it adjusts offsets, which are not computed here
			return nil, err
		}
		if c.Get("use_regex") != nil {
			if p.useRegex, err = c.Flag("use_regex"); err != nil {
				return nil, err
			}
		}
		if p.useRegex {
			p.words.p, _ = pattern.NewScanner(pattern.GPT2)
			p.words.behaviour = isolated
		}
		return append(steps, p), nil
	case "Split":
		p, err := newSplit(c)
		return append(steps, p), err
	case "Digits":
		each, err := c.Flag("individual_digits")
		if err != nil {
			return nil, err
		}
		p := split{p: pattern.Runes(chars.Characters().Numeric), behaviour: contiguous}
		if each {
			p.behaviour = isolated
		}
		return append(steps, p), nil
	case "Punctuation":
		p := split{p: pattern.Runes(isPunctuation), behaviour: isolated}
		if c.Get("behavior") != nil {
			var err error
			if p.behaviour, err = behaviourOf(c); err != nil {
				return nil, err
			}
		}
		return append(steps, p), nil
	case "BertPreTokenizer":
		return append(steps, split{p: pattern.Runes(isSpace), behaviour: removed},
			split{p: pattern.Runes(isPunctuation), behaviour: isolated}), nil
	case "Whitespace":
		return append(steps, split{p: wordsAndSymbols{}, behaviour: removed, invert: true}), nil
	case "WhitespaceSplit":
		return append(steps, split{p: pattern.Runes(isSpace), behaviour: removed}), nil
	case "CharDelimiterSplit":
		delimiter, err := c.Char("delimiter")
		return append(steps, split{p: pattern.Literal(delimiter), behaviour: removed}), err
	case "FixedLength":
		p, err := newFixedLength(c)
		return append(steps, p), err
	case "UnicodeScripts":
		return append(steps, unicodeScripts{}), nil
	case "Metaspace":
		m, err := NewMetaspace(c)
		return append(steps, m), err
	case "Sequence":
		parts, err := c.Parts("pretokenizers")
		if err != nil {
			return nil, err
		}
		for _, part := range parts {
			if steps, err = preTokenizerSteps(steps, part); err != nil {
				return nil, err
			}
		}
		return steps, nil
	}
	return nil, c.Unsupported("is not supported")
}

func newSplit(c jsonfile.Component) (split, error) {
	p, err := pattern.New(c)
	if err != nil {
		return split{}, err
	}
	b, err := behaviourOf(c)
	if err != nil {
		return split{}, err
	}
	invert, err := c.Flag("invert")
	return split{p, b, invert}, err
}

func behaviourOf(c jsonfile.Component) (behaviour, error) {
	name, err := c.Str("behavior")
	if err != nil {
		return 0, err
	}
	b, ok := behaviours[name]
	if !ok {
		return 0, c.Unsupported("with behavior %q is not supported", name)
	}
	return b, nil
}

// Steps run in order, each on the pieces of the previous one.
type Steps []PreTokenizer

// pieceWork is what a piece costs beside its bytes.
const pieceWork = 32

// Chain returns what splits the parts of a text of n bytes and calls emit for each piece. The pieces of each step are
// bounded, since a step may make them longer.
func (seq Steps) Chain(m *work.Meter, n int, emit Emit) Emit {
	limit := 2*limits.NormalizedTimes*n + limits.NormalizedMore
	for _, step := range slices.Backward(seq) {
		next, room := emit, limit
		counted := func(piece string, first bool) error {
			if room -= len(piece); room < 0 {
				const format = "tokenizer: the pre-tokenizer expands a text of %d bytes to more than %d"
				return fault.Errorf(fault.ErrInvalid, format, n, limit)
			}
			if err := m.Spend(pieceWork + len(piece)); err != nil {
				return err
			}
			return next(piece, first)
		}
		emit = func(s string, first bool) error { return step.Pieces(m, s, first, counted) }
	}
	return emit
}

// RawBytes makes a final byte-level step emit plain bytes, for models that accept them. It reports whether it did.
func (seq Steps) RawBytes() bool {
	for i, step := range seq {
		if b, ok := step.(*byteLevel); ok {
			if i == len(seq)-1 {
				b.raw = true
			}
			return b.raw
		}
	}
	return false
}

// byteLevel splits with the GPT-2 pattern and maps bytes to the byte-level alphabet.
type byteLevel struct {
	addPrefixSpace bool
	useRegex       bool
	words          split
	raw            bool // emit plain bytes
}

func (p *byteLevel) Pieces(m *work.Meter, s string, first bool, emit Emit) error {
	if p.addPrefixSpace && s[0] != ' ' {
		s = " " + s
	}
	if !p.raw {
		raw := emit
		emit = func(piece string, first bool) error { return raw(chars.ToByteLevel(piece), first) }
	}
	if !p.useRegex {
		return emit(s, first)
	}
	return p.words.Pieces(m, s, first, emit)
}
