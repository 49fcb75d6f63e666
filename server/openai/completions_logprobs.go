package openai

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server"
)

// textLogProbs has parallel lists with an element for each token.
type textLogProbs struct {
	Tokens   []string    `json:"tokens"`
	LogProbs []*float32  `json:"token_logprobs"` // null for a prompt's first token, which nothing predicts
	Top      []topTokens `json:"top_logprobs"`   // ditto
	Offsets  []int       `json:"text_offset"`    // in characters, from the start of the choice's text
}

// topTokens are tokens with their logprobs, or null.
type topTokens map[string]float32

func newTextLogProbs() *textLogProbs {
	return &textLogProbs{[]string{}, []*float32{}, []topTokens{}, []int{}}
}

// add appends tokens.
func (t *textLogProbs) add(m *server.Model, list []runtime.LogProb, places *textPlaces) {
	for i, l := range m.LogProbs(list) {
		top := topTokens{tokenName(l): l.LogProb}
		for _, o := range l.Top {
			top[tokenName(o)] = o.LogProb
		}
		t.Tokens, t.LogProbs, t.Top = append(t.Tokens, tokenName(l)), append(t.LogProbs, &l.LogProb), append(t.Top, top)
		t.Offsets = append(t.Offsets, places.next(list[i].ID))
	}
}

// addFirst appends the first token of a prompt, which has no logprob.
func (t *textLogProbs) addFirst(m *server.Model, id int32, places *textPlaces) {
	t.Tokens = append(t.Tokens, tokenName(m.LogProbs([]runtime.LogProb{{ID: id}})[0]))
	t.LogProbs, t.Top, t.Offsets = append(t.LogProbs, nil), append(t.Top, nil), append(t.Offsets, places.next(id))
}

func (t *textLogProbs) append(more *textLogProbs) {
	if more != nil {
		t.Tokens, t.LogProbs = append(t.Tokens, more.Tokens...), append(t.LogProbs, more.LogProbs...)
		t.Top, t.Offsets = append(t.Top, more.Top...), append(t.Offsets, more.Offsets...)
	}
}

// tokenName returns a token as this API spells it. Tokens that are parts of characters are spelled as bytes: their
// texts would be equal, and the keys of top_logprobs must differ.
func tokenName(l server.LogProbJSON) string {
	whole := make([]byte, len(l.Bytes))
	for i, b := range l.Bytes {
		whole[i] = byte(b)
	}
	if utf8.Valid(whole) {
		return l.Token
	}
	var b strings.Builder
	b.WriteString("bytes:")
	for _, c := range whole {
		fmt.Fprintf(&b, `\x%02x`, c)
	}
	return b.String()
}

// textPlaces finds where tokens begin in a choice's text. A token that completes a character begins where the character
// does.
type textPlaces struct {
	m      *server.Model
	stream interface{ Next(int32) string } // nil: there is no text
	prompt string                          // what is left of the prompt's text
	at     int                             // characters that are complete
	end    int                             // characters of the prompt's text; -1 after it
}

func newTextPlaces(m *server.Model, e *echo) *textPlaces {
	t := &textPlaces{m: m}
	if tok := m.Tokenizer(); tok != nil {
		t.stream = tok.Stream(true)
	}
	if e != nil {
		t.prompt, t.end = e.text, utf8.RuneCountInString(e.text)
	}
	return t
}

// generated says that the prompt's tokens are over.
func (t *textPlaces) generated() {
	if t.end >= 0 {
		t.at, t.end = t.end, -1
	}
}

// next returns where a token begins.
func (t *textPlaces) next(id int32) int {
	at := t.at
	if t.stream == nil {
		return at
	}
	text := t.stream.Next(id)
	if t.end < 0 {
		t.at += utf8.RuneCountInString(text)
		return at
	}
	if _, ok := t.m.Tokenizer().Bytes(id); !ok && text == "" { // a special token, which the prompt may spell out
		if name, _ := t.m.Tokenizer().Token(id); name != "" && strings.HasPrefix(t.prompt, name) {
			text = name
		}
	}
	t.prompt = t.prompt[min(len(text), len(t.prompt)):]
	t.at = min(t.at+utf8.RuneCountInString(text), t.end)
	return at
}
