package tokenizer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/work"
	"github.com/ingotml/ingot/tokenizer/chars"
	"github.com/ingotml/ingot/tokenizer/encode"
	"github.com/ingotml/ingot/tokenizer/jsonfile"
	"github.com/ingotml/ingot/tokenizer/normalize"
	"github.com/ingotml/ingot/tokenizer/pretokenize"
	"github.com/ingotml/ingot/tokenizer/trie"
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

	plain      *trie.Finder // of tokens that are matched in the original text
	normalized *trie.Finder
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
	bytes := 0
	for _, t := range tokens {
		bytes += len(t.content)
	}
	w := work.Start(context.Background(), encodeLimits(bytes))
	defer w.Done()
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
		if len(t.content) > limits.TokenBytes {
			return tooLong(id, t.content)
		}
		if t.normalized && n != nil {
			s, err := normalize.NewPass(w, len(t.content)).Take(n, t.content)
			switch {
			case err != nil:
				return err
			case len(s) > limits.TokenBytes:
				return tooLong(id, s)
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

func tooLong(id int32, token string) error {
	return fmt.Errorf("token %d has %d bytes; at most %d", id, len(token), limits.TokenBytes)
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
	var plain, normalized []trie.Entry
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(v.tokens))) { // of equal ones, the lowest id wins
		t := v.tokens[id]
		if !t.normalized {
			plain = append(plain, trie.Entry{Text: t.content, ID: id})
			continue
		}
		content, ok := v.shown[id]
		if !ok {
			content = t.content
		}
		normalized = append(normalized, trie.Entry{Text: content, ID: id})
	}
	v.plain, v.normalized = trie.NewFinder(plain), trie.NewFinder(normalized)
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

// split calls token for each added token that f finds, and text for the text between them. first is as in Emit.
func (v *addedVocabulary) split(
	w *work.Meter, f *trie.Finder, s string, first bool, text pretokenize.Emit, token func(int32) error,
) error {
	start := 0
	spaces, spacesEnd := 0, 0 // the white space that was skipped last
	search := f.Search(s)
	for at := 0; at < len(s); {
		from, to, id, err := search.Next(w, at)
		if err != nil {
			return err
		}
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
			if to < spaces || to > spacesEnd { // the same white space may follow many tokens
				spaces, spacesEnd = to, chars.Characters().Skip(s, to, chars.ClassSpace)
			}
			to = spacesEnd
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
