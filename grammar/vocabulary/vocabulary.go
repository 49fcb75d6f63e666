// Package vocabulary holds the bytes of a model's tokens in tries, and finds the tokens that a grammar names.
//
// Contract: a vocabulary is built once per tokenizer, and is immutable and safe for concurrent use.
package vocabulary

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/trie"
)

// PlainLengths is the largest length in characters for which plain tokens have a mask of their own.
const PlainLengths = 16

// LongestToken bounds the bytes of usable tokens. Longer ones are runs of a single character.
const LongestToken = 255

// Vocabulary holds the bytes of all tokens of a model. Build one per tokenizer and share it.
type Vocabulary struct {
	tokens    [][]byte
	Encode    func(string) ([]int32, error)
	All       trie.Trie              // of all tokens
	Plains    trie.Trie              // of plain tokens
	Rest      trie.Trie              // of all other tokens
	Long      trie.Trie              // of plain tokens with more than PlainLengths characters
	Plain     [PlainLengths][]uint32 // masks of plain tokens by length in characters, from 1
	LongPlain []uint32               // mask of longer plain tokens
	HasPlain  [PlainLengths]bool     // plain has tokens of this length
	Singles   expr.ByteSet           // bytes that are tokens
	id        func(string) (int32, bool)
	ends      []int32
	usable    []uint32 // mask of the tokens that can be within a text, special ones included
	crossing  crossing
}

// crossing are the tokens that can complete an item that begins within them, by what comes before.
type crossing struct {
	once                    sync.Once
	opened, quoted, commaed trie.Trie
}

// Options describes what is not in the bytes of tokens.
type Options struct {
	Encode  func(text string) ([]int32, error) // the tokenizer's encoder, which Forced prefers; nil: the longest tokens
	ID      func(token string) (int32, bool)   // finds a token by its text, special ones included; nil: by its bytes
	Special []int32                            // tokens without bytes that a grammar may name
	Ends    []int32                            // end-of-sequence tokens, which are never within a text
}

// New builds a vocabulary from the bytes of each token id. Tokens without bytes (special tokens, unused
// ids) are in a mask only where the grammar names them.
func New(tokens [][]byte, o Options) *Vocabulary {
	v := &Vocabulary{tokens: tokens, Encode: o.Encode, LongPlain: make([]uint32, Words(len(tokens))), id: o.ID,
		ends: o.Ends, usable: make([]uint32, Words(len(tokens)))}
	v.findUsable(o.Special)
	for i := range v.Plain {
		v.Plain[i] = make([]uint32, Words(len(tokens)))
	}
	order := make([]int32, 0, len(tokens))
	for id, b := range tokens {
		switch {
		case len(b) == 0 || len(b) > LongestToken:
			continue
		case len(b) == 1:
			v.Singles.Add(b[0])
		}
		order = append(order, int32(id))
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(bytes.Compare(tokens[a], tokens[b]), cmp.Compare(a, b))
	})
	v.All = trie.New(tokens, order)
	var plains, rest, long []int32
	for _, id := range order {
		if !plainJSON(tokens[id]) {
			rest = append(rest, id)
			continue
		}
		plains = append(plains, id)
		if n := utf8.RuneCount(tokens[id]); n <= PlainLengths {
			v.Plain[n-1][id>>5] |= 1 << (id & 31)
			v.HasPlain[n-1] = true
		} else {
			v.LongPlain[id>>5] |= 1 << (id & 31)
			long = append(long, id)
		}
	}
	v.Plains = trie.New(tokens, plains)
	v.Rest = trie.New(tokens, rest)
	v.Plains.MakeKinds(len(tokens))
	v.Rest.MakeKinds(len(tokens))
	v.Long = trie.New(tokens, long)
	return v
}

// findUsable marks the tokens with bytes and the special ones, without those that end a text.
func (v *Vocabulary) findUsable(special []int32) {
	for id, b := range v.tokens {
		if len(b) > 0 {
			v.usable[id>>5] |= 1 << (id & 31)
		}
	}
	for _, id := range special {
		if id >= 0 && int(id) < len(v.tokens) {
			v.usable[id>>5] |= 1 << (id & 31)
		}
	}
	for _, id := range v.ends {
		if id >= 0 && int(id) < len(v.tokens) {
			v.usable[id>>5] &^= 1 << (id & 31)
		}
	}
}

// Size returns the number of token ids, including special ones.
func (v *Vocabulary) Size() int { return len(v.tokens) }

// Bytes returns the bytes of a token, nil if only its name can be in a text.
func (v *Vocabulary) Bytes(id int32) []byte {
	if id < 0 || int(id) >= len(v.tokens) || len(v.tokens[id]) > LongestToken {
		return nil
	}
	return v.tokens[id]
}

// Words returns the length of a mask over the given number of token ids. Token id is bit id%32 of word id/32.
func Words(tokens int) int { return trie.Words(tokens) }

// plainJSON reports whether b can be part of any JSON string: whole characters that need no escape.
func plainJSON(b []byte) bool {
	for _, c := range b {
		if c < 0x20 || c == '"' || c == '\\' {
			return false
		}
	}
	return utf8.Valid(b)
}
