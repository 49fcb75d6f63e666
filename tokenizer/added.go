package tokenizer

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/ingotml/ingot/tokenizer/chars"
	"github.com/ingotml/ingot/tokenizer/encode"
	"github.com/ingotml/ingot/tokenizer/jsonfile"
	"github.com/ingotml/ingot/tokenizer/normalize"
	"github.com/ingotml/ingot/tokenizer/pretokenize"
)

// addedToken is a token that is matched in the text before other processing.
type addedToken struct {
	content    string
	singleWord bool // only matches where no word continues before or after it
	lstrip     bool // includes white space before it
	rstrip     bool // includes white space after it
	normalized bool // is matched in the normalized text
	special    bool // decoding can leave it out
}

// addedVocabulary is the added tokens of a tokenizer on top of its model's vocabulary (added_vocabulary.rs of the
// reference).
type addedVocabulary struct {
	model   encode.Model
	ids     map[string]int32
	tokens  map[int32]addedToken
	shown   map[int32]string // the normalized content of a token if it differs; decoding returns it
	special map[string]bool
	top     int32 // one more than the highest id of an added token

	plain      matcher // of tokens that are matched in the original text
	normalized matcher
	// splitSpecial encodes special tokens in the text as ordinary text.
	splitSpecial bool
}

func newAddedVocabulary(m encode.Model) *addedVocabulary {
	return &addedVocabulary{
		model: m, ids: map[string]int32{}, tokens: map[int32]addedToken{}, shown: map[int32]string{},
		special: map[string]bool{},
	}
}

// add adds tokens in order. A token in the vocabulary keeps its id; others get the next free id. As in the reference,
// the ids that files list with added tokens do not matter. Adding a token again updates its properties.
func (v *addedVocabulary) add(tokens []addedToken, n normalize.Normalizer) error {
	next := int32(v.model.Size())
	if v.top > next {
		next = v.top
	}
	for _, t := range tokens {
		if t.content == "" {
			continue
		}
		id, ok := v.id(t.content)
		if !ok {
			if next > jsonfile.MaxID {
				return fmt.Errorf("no free id for the added token %q", t.content)
			}
			id = next
			next++
		}
		if t.normalized && n != nil {
			s, err := n.Normalize(t.content, new(bool))
			if err != nil {
				return err
			}
			if s == "" { // the reference would split the text at every character
				return fmt.Errorf("normalizing the token %q leaves an empty string", t.content)
			}
			if s != t.content {
				v.shown[id] = s
			}
		}
		v.put(id, t)
	}
	return nil
}

// put makes a token that of an id, whatever the vocabulary has there.
func (v *addedVocabulary) put(id int32, t addedToken) {
	v.ids[t.content] = id
	v.tokens[id] = t
	v.top = max(v.top, id+1)
	if t.special {
		v.special[t.content] = true
	}
}

// matchPlain lets all tokens be matched in the original text, as programs without the library tokenizers do.
func (v *addedVocabulary) matchPlain() {
	for id, t := range v.tokens {
		t.normalized = false
		v.tokens[id] = t
	}
	clear(v.shown)
}

// index builds the matchers. Call it after the last add.
func (v *addedVocabulary) index() {
	for _, id := range slices.Sorted(maps.Keys(v.tokens)) {
		t := v.tokens[id]
		if !t.normalized {
			v.plain.insert(t.content, id)
			continue
		}
		content, ok := v.shown[id]
		if !ok {
			content = t.content
		}
		v.normalized.insert(content, id)
	}
}

func (v *addedVocabulary) id(token string) (int32, bool) {
	if id, ok := v.ids[token]; ok {
		return id, true
	}
	return v.model.ID(token)
}

// token returns the text of an id for decoding.
func (v *addedVocabulary) token(id int32) (string, bool) {
	if s, ok := v.shown[id]; ok {
		return s, true
	}
	if t, ok := v.tokens[id]; ok {
		return t.content, true
	}
	return v.model.Token(id)
}

// split calls token for each added token that m finds, and text for the text between them. first is as in Emit.
func (v *addedVocabulary) split(
	m *matcher, s string, first bool, text pretokenize.Emit, token func(int32) error,
) error {
	start := 0
	for at := 0; at < len(s); {
		from, to, id := m.find(s, at)
		if from < 0 {
			break
		}
		at = to // also if the match is rejected below
		t := v.tokens[id]
		if v.splitSpecial && v.special[t.content] || t.singleWord && !isWholeWord(s, from, to) {
			continue
		}
		if t.lstrip {
			from = chars.SpaceStart(s, from, start)
		}
		if t.rstrip {
			to = chars.Characters().Skip(s, to, chars.ClassSpace)
		}
		if start < from {
			if err := text(s[start:from], first && start == 0); err != nil {
				return err
			}
		}
		if err := token(id); err != nil {
			return err
		}
		start = to
	}
	if start < len(s) {
		return text(s[start:], first && start == 0)
	}
	return nil
}

// isWholeWord reports whether no word continues before or after s[from:to].
func isWholeWord(s string, from, to int) bool {
	t := chars.Characters()
	if from > 0 {
		if c, _ := utf8.DecodeLastRuneInString(s[:from]); t.Word(c) {
			return false
		}
	}
	if to < len(s) {
		if c, _ := utf8.DecodeRuneInString(s[to:]); t.Word(c) {
			return false
		}
	}
	return true
}

// matcher finds strings in a text: the leftmost match, and of those the longest.
type matcher struct {
	first [256]int32 // node of each first byte; 0: no string starts with it
	nodes []trieNode // node 0 is unused
}

// trieNode is one byte of a string. Its siblings are the alternatives for that byte.
type trieNode struct {
	child, sibling int32
	id             int32 // of the string that ends here; -1: none
	b              byte
}

// insert adds a string. Of equal strings the first wins; the reference's choice is arbitrary.
func (m *matcher) insert(s string, id int32) {
	if s == "" {
		return
	}
	if m.nodes == nil {
		m.nodes = make([]trieNode, 1)
	}
	link := func(to *int32, b byte) int32 {
		at := int32(len(m.nodes))
		*to = at
		m.nodes = append(m.nodes, trieNode{id: -1, b: b})
		return at
	}
	at := m.first[s[0]]
	if at == 0 {
		at = link(&m.first[s[0]], s[0])
	}
	for i := 1; i < len(s); i++ {
		next := m.next(at, s[i])
		if next == 0 {
			sibling := m.nodes[at].child
			next = link(&m.nodes[at].child, s[i])
			m.nodes[next].sibling = sibling
		}
		at = next
	}
	if m.nodes[at].id < 0 {
		m.nodes[at].id = id
	}
}

// next returns the child of a node for b, or 0.
func (m *matcher) next(at int32, b byte) int32 {
	for at = m.nodes[at].child; at != 0 && m.nodes[at].b != b; {
		at = m.nodes[at].sibling
	}
	return at
}

// find returns the first match that starts at or after at; from is -1 if there is none.
func (m *matcher) find(s string, at int) (from, to int, id int32) {
	if m.nodes == nil {
		return -1, 0, 0
	}
	for ; at < len(s); at++ {
		node := m.first[s[at]]
		if node == 0 {
			continue
		}
		id = -1
		for i := at + 1; node != 0; i++ {
			if m.nodes[node].id >= 0 {
				to, id = i, m.nodes[node].id
			}
			if i == len(s) {
				break
			}
			node = m.next(node, s[i])
		}
		if id >= 0 {
			return at, to, id
		}
	}
	return -1, 0, 0
}
