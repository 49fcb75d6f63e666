package expr

import (
	"strconv"
	"strings"
)

// Tokens is a set of tokens of a vocabulary: those with one of the names or ids, or with Not all others. A vocabulary
// resolves the names.
type Tokens struct {
	Names []string // the whole texts of tokens, such as <think>
	IDs   []IDSpan
	Not   bool
}

// IDSpan is a range of token ids.
type IDSpan struct{ First, Last int32 }

func Token(t *Tokens) *Expr { return &Expr{Op: OpToken, Tokens: t} }

// Complement returns all other tokens.
func (t *Tokens) Complement() *Tokens { return &Tokens{Names: t.Names, IDs: t.IDs, Not: !t.Not} }

// maxTokenName bounds the bytes of a token in a source.
const maxTokenName = 1000

// ParseTokens parses the token terminal that text begins with, and returns its length: <name>, whose name includes the
// brackets as in llama.cpp, or token ids in the syntax of llama.cpp and LLGuidance: <[10]>, <[10-20,30]>, <[^10]> and
// <[*]>. problem says what is wrong; it is empty without a problem.
func ParseTokens(text string) (t *Tokens, length int, problem string) {
	length = 1 + strings.IndexByte(text[:min(len(text), maxTokenName)], '>')
	if length == 0 || strings.Contains(text[:length], "\n") {
		return nil, 0, "a token has no closing >"
	}
	body := text[1 : length-1]
	if !strings.HasPrefix(body, "[") {
		if body == "" {
			return nil, 0, "the name of a token is empty"
		}
		return &Tokens{Names: []string{text[:length]}}, length, ""
	}
	bad := func() (*Tokens, int, string) {
		return nil, 0, text[:length] + " are not token ids such as <[10]> or <[10-20,30]>"
	}
	ids, ok := strings.CutSuffix(body[1:], "]")
	if !ok {
		return bad()
	}
	t = &Tokens{}
	ids, t.Not = strings.CutPrefix(ids, "^")
	if ids == "*" && !t.Not {
		t.Not = true
		return t, length, ""
	}
	for span := range strings.SplitSeq(ids, ",") {
		from, to, ranged := strings.Cut(span, "-")
		if !ranged {
			to = from
		}
		first, err := strconv.ParseUint(strings.TrimSpace(from), 10, 31)
		last, toErr := strconv.ParseUint(strings.TrimSpace(to), 10, 31)
		if err != nil || toErr != nil || last < first {
			return bad()
		}
		t.IDs = append(t.IDs, IDSpan{int32(first), int32(last)})
	}
	return t, length, ""
}
