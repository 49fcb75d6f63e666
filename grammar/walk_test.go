package grammar

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"slices"
	"sync"
	"testing"
)

// smallVocabulary has every byte and typical model tokens: fragments of JSON, words, parts of characters.
func smallVocabulary() *Vocabulary {
	var tokens [][]byte
	for b := range 256 {
		tokens = append(tokens, []byte{byte(b)})
	}
	for _, s := range []string{"", `{"`, `": `, `": "`, `", "`, `"}`, `"]`, `"]}`, `}]`, `}}`, `], [`, `[[`, `[]`, `{}`,
		`""`, `, `, `, "`, `: `,
		"true", "false", "null", "tr", "ue", "name", "the", " the", "ab", "abc", "aaaa", "aaaaaaaaaaaaaaaaaaaaaaaa", "00",
		"12", "123", "1234567890123456789",
		"-1", "0.", ".5", "e+", "E-", "\\u", "\\u00", "\\n", "\\\"", "é", "\xc3", "\xa9x", "日本", "\xe6\x97", "\xa5\"", "😀",
		"\xf0\x9f", "\\ud83d", "\\ude00",
		"  ", "    ", "        ", "\n", "\"name\": ", "{\"name\": \"", "\": \"the", "x", "2026-", "-01", "T12:", "00Z", "a",
		"id", "\": {\"", "\": [", "\": true", "\": null, \""} {
		tokens = append(tokens, []byte(s))
	}
	return NewVocabulary(tokens, nil)
}

func allowed(bits []uint32) (ids []int32) {
	for w, word := range bits {
		for b := range 32 {
			if word&(1<<b) != 0 {
				ids = append(ids, int32(w*32+b))
			}
		}
	}
	return ids
}

// write generates a text from random allowed tokens until it is complete or its budget is used up. Where the text may
// end, it does so with a probability of 1/3.
func write(t *testing.T, g *Grammar, v *Vocabulary, budget int, r *rand.Rand) string {
	t.Helper()
	m, err := g.Matcher(v, budget)
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	bits := make([]uint32, Words(v.Size()))
	for n := 0; ; n++ {
		if m.Done() && r.IntN(3) == 0 {
			return string(text)
		}
		if forced := m.Forced(budget - n); len(forced) > 0 && r.IntN(2) == 0 {
			for _, id := range forced {
				m.Mask(bits, budget-n)
				if !slices.Contains(allowed(bits), id) {
					t.Fatalf("after %q the forced token %q is not in the mask of %d", text, v.Bytes(id), budget-n)
				}
				if err := m.Accept(id); err != nil {
					t.Fatalf("after %q: forced: %v", text, err)
				}
				text = append(text, v.Bytes(id)...)
				n++
			}
			n--
			continue
		}
		any := m.Mask(bits, budget-n)
		ids := allowed(bits)
		if any != (len(ids) > 0) {
			t.Fatalf("after %q: any = %v with %d tokens", text, any, len(ids))
		}
		if !any {
			if !m.Done() {
				t.Fatalf("after %q, %d of %d tokens: no next token", text, n, budget)
			}
			return string(text)
		}
		id := ids[r.IntN(len(ids))]
		if err := m.Accept(id); err != nil {
			t.Fatalf("after %q: %v", text, err)
		}
		text = append(text, v.Bytes(id)...)
	}
}

func fewest(t *testing.T, g *Grammar, v *Vocabulary) int {
	t.Helper()
	m, err := g.Matcher(v, -1)
	if err != nil {
		t.Fatal(err)
	}
	return m.Fewest()
}

func TestJSONWalks(t *testing.T) {
	v := smallVocabulary()
	r := rand.New(rand.NewPCG(1, 2))
	for name, g := range map[string]*Grammar{"value": JSON(), "object": JSONObject()} {
		least := fewest(t, g, v)
		if least != 1 {
			t.Errorf("%s: the shortest text has %d tokens, want 1", name, least)
		}
		for i := range 300 {
			s := write(t, g, v, least+i%60, r)
			if !json.Valid([]byte(s)) {
				t.Fatalf("%s: %q is not JSON", name, s)
			}
			var x any
			if err := json.Unmarshal([]byte(s), &x); err != nil {
				t.Fatalf("%s: %q: %v", name, s, err)
			}
		}
	}
}

func TestRegexWalks(t *testing.T) {
	v := smallVocabulary()
	r := rand.New(rand.NewPCG(3, 4))
	for _, p := range []string{`abc`, `a*b+c?`, `(ab|a|abc){2,5}`, `[a-z]{3}-\d{2,4}`, `(?i)hello wörld`, `\p{Greek}+`,
		`[^"\\]*`, `(a|aa|aaa)*b`,
		`(a|b)*a(a|b){20}`, `.{0,40}`, `(x{0,5}y?){3,6}`, `[\x{1F600}-\x{1F64F}]{1,3}`, `(a{2,3}){20,40}`, `(|a)+(|b)*c`,
		`a{50,1000}`, `((a*)*)*x`} {
		g, err := CompileRegex(context.Background(), p)
		if err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		re := regexp.MustCompile(`^(?:` + p + `)$`)
		least := fewest(t, g, v)
		for i := range 60 {
			s := write(t, g, v, least+i, r)
			if !re.MatchString(s) {
				t.Fatalf("%s: %q does not match", p, s)
			}
		}
	}
}

// One grammar and one vocabulary serve concurrent matchers.
func TestConcurrentMatchers(t *testing.T) {
	v := smallVocabulary()
	g := JSONObject()
	var wg sync.WaitGroup
	for i := range uint64(4) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(i, 11))
			m, err := g.Matcher(v, 60)
			if err != nil {
				t.Error(err)
				return
			}
			var text []byte
			bits := make([]uint32, Words(v.Size()))
			for n := 0; n < 60 && m.Mask(bits, 60-n); n++ {
				ids := allowed(bits)
				id := ids[r.IntN(len(ids))]
				if err := m.Accept(id); err != nil {
					t.Error(err)
					return
				}
				text = append(text, v.Bytes(id)...)
			}
			if !m.Done() || !json.Valid(text) {
				t.Errorf("wrote %q", text)
			}
		})
	}
	wg.Wait()
}
