package grammar

import (
	"bytes"
	"cmp"
	"slices"
	"unicode/utf8"

	"github.com/ingotml/ingot/grammar/expr"
)

// longestToken bounds the bytes of usable tokens. Longer ones are runs of a single character.
const longestToken = 255

// Vocabulary holds the bytes of all tokens of a model. Build one per tokenizer and share it.
type Vocabulary struct {
	tokens    [][]byte
	encode    func(string) ([]int32, error)
	all       trie                   // of all tokens
	plains    trie                   // of plain tokens
	rest      trie                   // of all other tokens
	long      trie                   // of plain tokens with more than plainLengths characters
	plain     [plainLengths][]uint32 // masks of plain tokens by length in characters, from 1
	longPlain []uint32               // mask of longer plain tokens
	hasPlain  [plainLengths]bool     // plain has tokens of this length
	singles   expr.ByteSet           // bytes that are tokens
	id        func(string) (int32, bool)
	ends      []int32
	usable    []uint32 // mask of the tokens that can be within a text, special ones included
	crossing  crossing // see guard.go
}

// trie stores tokens in byte order, in preorder: a node's subtree follows it and ends at skip.
type trie struct {
	nodes  []trieNode
	roots  [256]int32 // by byte: the first node of the tokens that begin with it, or -1
	below  []uint64   // by node: the kinds of bytes in the subtree below it, see byteKinds
	groups [][]int32  // tokens with equal bytes
	kinds  *kindTrie  // nil: none is made
}

type trieNode struct {
	skip  int32
	token int32 // the token that ends here; noToken; or groupToken-i for groups[i]
	key   byte
	depth uint8 // from 1
}

const (
	noToken    = -1
	groupToken = -2
)

// VocabularyOptions describes what is not in the bytes of tokens.
type VocabularyOptions struct {
	Encode  func(text string) ([]int32, error) // the tokenizer's encoder, which Forced prefers; nil: the longest tokens
	ID      func(token string) (int32, bool)   // finds a token by its text, special ones included; nil: by its bytes
	Special []int32                            // tokens without bytes that a grammar may name
	Ends    []int32                            // end-of-sequence tokens, which are never within a text
}

// NewVocabulary builds a vocabulary from the bytes of each token id. encode is VocabularyOptions.Encode.
func NewVocabulary(tokens [][]byte, encode func(text string) ([]int32, error)) *Vocabulary {
	return NewVocabularyWith(tokens, VocabularyOptions{Encode: encode})
}

// NewVocabularyWith builds a vocabulary from the bytes of each token id. Tokens without bytes (special tokens, unused
// ids) are in a mask only where the grammar names them.
func NewVocabularyWith(tokens [][]byte, o VocabularyOptions) *Vocabulary {
	v := &Vocabulary{tokens: tokens, encode: o.Encode, longPlain: make([]uint32, Words(len(tokens))), id: o.ID,
		ends: o.Ends, usable: make([]uint32, Words(len(tokens)))}
	v.findUsable(o.Special)
	for i := range v.plain {
		v.plain[i] = make([]uint32, Words(len(tokens)))
	}
	order := make([]int32, 0, len(tokens))
	for id, b := range tokens {
		switch {
		case len(b) == 0 || len(b) > longestToken:
			continue
		case len(b) == 1:
			v.singles.Add(b[0])
		}
		order = append(order, int32(id))
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(bytes.Compare(tokens[a], tokens[b]), cmp.Compare(a, b))
	})
	v.all = makeTrie(tokens, order)
	var plains, rest, long []int32
	for _, id := range order {
		if !plainJSON(tokens[id]) {
			rest = append(rest, id)
			continue
		}
		plains = append(plains, id)
		if n := utf8.RuneCount(tokens[id]); n <= plainLengths {
			v.plain[n-1][id>>5] |= 1 << (id & 31)
			v.hasPlain[n-1] = true
		} else {
			v.longPlain[id>>5] |= 1 << (id & 31)
			long = append(long, id)
		}
	}
	v.plains = makeTrie(tokens, plains)
	v.rest = makeTrie(tokens, rest)
	v.plains.kinds, v.rest.kinds = makeKindTrie(&v.plains, len(tokens)), makeKindTrie(&v.rest, len(tokens))
	v.long = makeTrie(tokens, long)
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
	if id < 0 || int(id) >= len(v.tokens) || len(v.tokens[id]) > longestToken {
		return nil
	}
	return v.tokens[id]
}

// Words returns the length of a mask over the given number of token ids. Token id is bit id%32 of word id/32.
func Words(tokens int) int { return (tokens + 31) / 32 }

// plainJSON reports whether b can be part of any JSON string: whole characters that need no escape.
func plainJSON(b []byte) bool {
	for _, c := range b {
		if c < 0x20 || c == '"' || c == '\\' {
			return false
		}
	}
	return utf8.Valid(b)
}

// makeTrie builds a trie of the tokens in order, which is sorted by bytes.
func makeTrie(tokens [][]byte, order []int32) (t trie) {
	var path []int32 // nodes from the root to the last one
	var last []byte
	closeTo := func(depth int) {
		for len(path) > depth {
			t.nodes[path[len(path)-1]].skip = int32(len(t.nodes))
			path = path[:len(path)-1]
		}
	}
	for _, id := range order {
		b := tokens[id]
		common := 0
		for common < len(b) && common < len(last) && b[common] == last[common] {
			common++
		}
		if common == len(b) && len(b) == len(last) {
			n := &t.nodes[path[len(path)-1]]
			if n.token >= 0 {
				t.groups = append(t.groups, []int32{n.token})
				n.token = groupToken - int32(len(t.groups)-1)
			}
			g := &t.groups[groupToken-n.token]
			*g = append(*g, id)
			continue
		}
		closeTo(common)
		for i := common; i < len(b); i++ {
			path = append(path, int32(len(t.nodes)))
			t.nodes = append(t.nodes, trieNode{token: noToken, key: b[i], depth: uint8(i + 1)})
		}
		t.nodes[path[len(path)-1]].token = id
		last = b
	}
	closeTo(0)
	for b := range t.roots {
		t.roots[b] = -1
	}
	for i := int32(0); int(i) < len(t.nodes); i = t.nodes[i].skip {
		t.roots[t.nodes[i].key] = i
	}
	t.below = make([]uint64, len(t.nodes))
	for i := len(t.nodes) - 1; i >= 0; i-- {
		for k := int32(i) + 1; k < t.nodes[i].skip; k = t.nodes[k].skip {
			t.below[i] |= 1<<kindOf[t.nodes[k].key] | t.below[k]
		}
	}
	return t
}

// set marks the tokens that end at a node.
func (t *trie) set(bits []uint32, n *trieNode) {
	if n.token >= 0 {
		bits[n.token>>5] |= 1 << (n.token & 31)
		return
	}
	for _, id := range t.groups[groupToken-n.token] {
		bits[id>>5] |= 1 << (id & 31)
	}
}

// setAll marks, or clears, the tokens that end at the nodes from one to another.
func (t *trie) setAll(bits []uint32, from, to int32, on bool) {
	for i := from; i < to; i++ {
		n := &t.nodes[i]
		switch {
		case n.token == noToken:
		case on:
			t.set(bits, n)
		case n.token >= 0:
			bits[n.token>>5] &^= 1 << (n.token & 31)
		default:
			for _, id := range t.groups[groupToken-n.token] {
				bits[id>>5] &^= 1 << (id & 31)
			}
		}
	}
}

// child returns the child of at for key, or -1. The root is -1.
func (t *trie) child(at int32, key byte) int32 {
	if at < 0 {
		return t.roots[key]
	}
	for i, to := at+1, t.nodes[at].skip; i < to && t.nodes[i].key <= key; i = t.nodes[i].skip {
		if t.nodes[i].key == key {
			return i
		}
	}
	return -1
}

// first returns one of the tokens that end at a node.
func (t *trie) first(n *trieNode) int32 {
	if n.token <= groupToken {
		return t.groups[groupToken-n.token][0]
	}
	return n.token
}
