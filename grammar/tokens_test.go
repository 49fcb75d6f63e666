package grammar

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Special tokens of tokenVocabulary, which have no bytes.
const (
	think = 256 + iota
	endThink
	call
	endOfText
	unused
	spelled // <spelled>, a token with bytes
	firstWord
)

var tokenNames = map[string]int32{"<think>": think, "</think>": endThink, "<|call|>": call, "<|end|>": endOfText}

// tokenVocabulary has every byte, special tokens and a few words.
func tokenVocabulary() *Vocabulary {
	var tokens [][]byte
	for b := range 256 {
		tokens = append(tokens, []byte{byte(b)})
	}
	for _, s := range []string{"", "", "", "", "", "<spelled>", "ab", "abc", "<think", "hello", " world", "é", `{"`,
		`"}`} {
		tokens = append(tokens, []byte(s))
	}
	id := func(name string) (int32, bool) {
		i, ok := tokenNames[name]
		return i, ok
	}
	return NewVocabularyWith(tokens, VocabularyOptions{ID: id, Special: []int32{think, endThink, call, endOfText},
		Ends: []int32{endOfText}})
}

// ids spells a text with single bytes, and its {names} with one token each.
func ids(text string) (out []int32) {
	for text != "" {
		if name, rest, ok := strings.Cut(text[1:], "}"); ok && text[0] == '{' {
			id, special := tokenNames[name]
			if !special {
				id = spelled
			}
			out, text = append(out, id), rest
			continue
		}
		out, text = append(out, int32(text[0])), text[1:]
	}
	return out
}

func acceptsTokens(t *testing.T, g *Grammar, v *Vocabulary, tokens []int32) bool {
	t.Helper()
	m, err := g.Matcher(v, -1)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range tokens {
		if m.Accept(id) != nil {
			return false
		}
	}
	return m.Done()
}

var tokenGrammars = []struct {
	source  string
	yes, no []string
}{
	{`root ::= <think> content </think>
content ::= (!</think>)*`,
		[]string{"{<think>}hello{</think>}", "{<think>}{</think>}", "{<think>}a{<|call|>}b{<think>}{</think>}",
			"{<think>}</think>{</think>}"},
		[]string{"{<think>}hello", "{<think>}", "a{</think>}", "{<think>}{</think>}{</think>}", "<think>{</think>}",
			"{<think>}{<|end|>}{</think>}"}},
	{"root ::= <[256]> !<[257]>* <[257]> .*", []string{"{<think>}ab{</think>}xyz"},
		[]string{"{<think>}{</think>}{<think>}", "{<think>}{</think>}a\n"}},
	{"root ::= <spelled> \"x\"", []string{"{<spelled>}x"}, []string{"<spelled>x", "x"}},
	{"root ::= (<spelled> | \"<spelled>\") \"x\"", []string{"{<spelled>}x", "<spelled>x"}, []string{"<spelledx"}},
	{"root ::= !<think> \"b\"", []string{"ab", "{<|call|>}b", "{<spelled>}b"}, []string{"{<think>}b", "b", "{<|end|>}b"}},
	{"root ::= ([a-z] | <|call|>){2,3} <[256-257]>", []string{"ab{<think>}", "a{<|call|>}b{</think>}"},
		[]string{"a{<think>}", "ab", "abab{<think>}"}},
	{"root ::= r </think> | \"a\"\nr ::= <think> r | \"(\" r \")\" | <|call|>",
		[]string{"a", "{<think>}({<|call|>}){</think>}"}, []string{"{<think>}({<|call|>}{</think>}", "{<think>}"}},
}

// The semantics of llama.cpp's token terminals: github.com/ggml-org/llama.cpp/pull/17816.
func TestTokenTerminals(t *testing.T) {
	v := tokenVocabulary()
	for _, c := range tokenGrammars {
		g, err := CompileEBNF(context.Background(), c.source)
		if err != nil {
			t.Errorf("%s: %v", c.source, err)
			continue
		}
		checkTexts(t, c.source, c.yes, c.no, func(text string) bool { return acceptsTokens(t, g, v, ids(text)) })
	}
}

// With token terminals, a token is in the mask exactly if Accept takes it, and a text fits into its budget.
func TestTokenMasks(t *testing.T) {
	v := tokenVocabulary()
	r := rand.New(rand.NewPCG(7, 8))
	for _, c := range tokenGrammars {
		g, err := CompileEBNF(context.Background(), c.source)
		if err != nil {
			t.Fatal(err)
		}
		for range 6 {
			m, err := g.Matcher(v, -1)
			if err != nil {
				t.Fatal(err)
			}
			budget := m.Fewest() + r.IntN(12)
			for left := budget; ; left-- {
				checkMask(t, m, v, -1, nil)
				ids := checkMask(t, m, v, left, nil)
				if len(ids) == 0 {
					if !m.Done() {
						t.Fatalf("%s: %d of %d tokens left, and none is allowed", c.source, left, budget)
					}
					break
				}
				if forced := m.Forced(left); len(forced) > 0 && !slices.Contains(ids, forced[0]) {
					t.Fatalf("%s: the forced token %d is not in the mask", c.source, forced[0])
				}
				if err := m.Accept(ids[r.IntN(len(ids))]); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func TestForcedTokens(t *testing.T) {
	v := tokenVocabulary()
	g, err := CompileEBNF(context.Background(), `root ::= "ab" <think> "hello" </think> <|call|> [xy]`)
	if err != nil {
		t.Fatal(err)
	}
	m, err := g.Matcher(v, -1)
	if err != nil {
		t.Fatal(err)
	}
	want := []int32{firstWord, think, firstWord + 3, endThink, call}
	if got := m.Forced(-1); !slices.Equal(got, want) {
		t.Errorf("forced %v, want %v", got, want)
	}
	if got := m.Forced(6); !slices.Equal(got, want) {
		t.Errorf("forced %v with six tokens, want %v", got, want)
	}
}

func TestTokenErrors(t *testing.T) {
	v := tokenVocabulary()
	for source, want := range map[string]struct {
		kind error
		says string
	}{
		`root ::= <th`:              {ErrInvalid, "line 1: a token has no closing >"},
		`root ::= <>`:               {ErrInvalid, "empty"},
		`root ::= ! "a"`:            {ErrInvalid, "after !"},
		`root ::= <[x]>`:            {ErrInvalid, "<[x]> are not token ids"},
		`root ::= <[5-3]>`:          {ErrInvalid, "<[5-3]>"},
		`root ::= <[99999999999]>`:  {ErrInvalid, "99999999999"},
		`root ::= "a" | <[100000]>`: {ErrVocabulary, "token id 100000"},
		`root ::= "a" <unknown>`:    {ErrVocabulary, "<unknown> is not one token"},
		`root ::= !<unknown>`:       {ErrVocabulary, "<unknown>"},
		`root ::= "a" <|end|>`:      {ErrVocabulary, "leave it out"},
		`root ::= <[260]>`:          {ErrVocabulary, "no token"},
	} {
		g, err := CompileEBNF(context.Background(), source)
		if err == nil {
			_, err = g.Matcher(v, -1)
		}
		if !errors.Is(err, want.kind) || !strings.Contains(err.Error(), want.says) {
			t.Errorf("%s: got %v, want %v with %q", source, err, want.kind, want.says)
		}
	}
}

// The state after most characters may name tokens that the state before them does not.
func TestTokensAround(t *testing.T) {
	v := tokenVocabulary()
	g, err := CompileEBNF(context.Background(), `root ::= "abc" "d" | [ -!#-b] [ -!#-~]* <think> "x"`)
	if err != nil {
		t.Fatal(err)
	}
	walkMasks(t, g, v, 6, 10, true)
	if acceptsTokens(t, g, v, ids("{<think>}x")) || !acceptsTokens(t, g, v, ids("ab{<think>}x")) {
		t.Error("the token is allowed in the wrong places")
	}
}
