package server

import (
	"strings"

	"github.com/ingotml/ingot/runtime"
)

// LogProbJSON is a token with its logprob.
type LogProbJSON struct {
	Token   string        `json:"token"`
	LogProb float32       `json:"logprob"`
	Bytes   []int         `json:"bytes,omitempty"` // the token's bytes, which may split a character
	Top     []LogProbJSON `json:"top_logprobs,omitempty"`
}

// LogProbs adds the tokens' texts to logprobs.
func (m *Model) LogProbs(list []runtime.LogProb) (out []LogProbJSON) {
	for _, l := range list {
		p := m.logProb(l.ID, l.LogProb)
		for _, t := range l.Top {
			p.Top = append(p.Top, m.logProb(t.ID, t.LogProb))
		}
		out = append(out, p)
	}
	return out
}

func (m *Model) logProb(id int32, p float32) LogProbJSON {
	out := LogProbJSON{LogProb: p}
	tok := m.Tokenizer()
	if tok == nil {
		return out
	}
	text, ok := tok.Bytes(id)
	if !ok { // a special token
		name, _ := tok.Token(id)
		text = []byte(name)
	}
	out.Token = strings.ToValidUTF8(string(text), "\uFFFD")
	for _, b := range text {
		out.Bytes = append(out.Bytes, int(b))
	}
	return out
}
