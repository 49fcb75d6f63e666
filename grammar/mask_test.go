package grammar

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ingotml/ingot/grammar/grammartest"
)

// checkMask compares a mask with the result of Accept for every token. It returns the allowed tokens.
func checkMask(t *testing.T, m *Matcher, v *Vocabulary, remaining int, text []byte) []int32 {
	t.Helper()
	bits := make([]uint32, Words(v.Size()))
	m.Mask(bits, remaining)
	got := allowed(bits)
	var want []int32
	for id := range int32(v.Size()) {
		c := m.Clone()
		if c.Accept(id) == nil && (remaining < 0 || c.Fewest() <= remaining-1) {
			want = append(want, id)
		}
	}
	if !slices.Equal(got, want) {
		for id := range int32(v.Size()) {
			if slices.Contains(got, id) != slices.Contains(want, id) {
				t.Errorf("after %q with %d remaining: token %q is in the mask: %v, accepted: %v", text, remaining, v.Bytes(id),
					slices.Contains(got, id), slices.Contains(want, id))
			}
		}
		t.FailNow()
	}
	return got
}

func testGrammars(t *testing.T) map[string]*Grammar {
	t.Helper()
	grammars := map[string]*Grammar{"json": JSON()}
	for _, p := range []string{`("([^"\\]|\\.){0,30}",? ?){1,30}`, `(([a-z]{2,20} ){3,9}[A-Z]+){2,3}`, `.{30,60}`,
		`(a|b)*a(a|b){20}`} {
		g, err := CompileRegex(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		grammars[p] = g
	}
	for _, schema := range []string{
		`{"type": "object", "properties": {"name": {"type": "string", "minLength": 1}, "text": {"type": "string", ` +
			`"maxLength": 25}}, "required": ["name"], "additionalProperties": {"type": "string"}}`,
		`{"type": "array", "items": {"type": "string", "minLength": 20, "maxLength": 60}, "maxItems": 3, "minItems": 2}`,
	} {
		g, err := CompileSchema(context.Background(), []byte(schema))
		if err != nil {
			t.Fatal(err)
		}
		grammars[schema] = g
	}
	g, err := CompileEBNF(context.Background(), `root ::= expr
expr ::= expr "+" term | expr "-" term | term
term ::= [0-9]{1,40} | "(" expr ")" | '"' [^"\x00-\x1f]* '"'`)
	if err != nil {
		t.Fatal(err)
	}
	grammars["sums"] = g
	return grammars
}

// A token is in the mask exactly if Accept takes it; with a budget, exactly if the rest also fits.
func TestMaskIsAccept(t *testing.T) { testMasks(t, smallVocabulary(), max(2, 6/raceFactor), 40) }

// The same with a larger vocabulary.
func TestMaskIsAcceptLarge(t *testing.T) {
	testMasks(t, NewVocabulary(grammartest.Tokens(4096), nil), max(1, 3/raceFactor), 12/min(raceFactor, 2))
}

func testMasks(t *testing.T, v *Vocabulary, texts, steps int) {
	for name, g := range testGrammars(t) {
		t.Run(name, func(t *testing.T) {
			walkMasks(t, g, v, texts, steps, true)
		})
	}
}

// walkMasks checks the masks along random texts.
func walkMasks(t *testing.T, g *Grammar, v *Vocabulary, texts, steps int, budgets bool) {
	t.Helper()
	r := rand.New(rand.NewPCG(5, 6))
	for range texts {
		m, err := g.Matcher(v, -1)
		if err != nil {
			t.Fatal(err)
		}
		var text []byte
		for range steps {
			if budgets {
				checkMask(t, m, v, m.Fewest()+r.IntN(4), text)
			}
			ids := checkMask(t, m, v, -1, text)
			if len(ids) == 0 {
				break
			}
			id := ids[r.IntN(len(ids))]
			if err := m.Accept(id); err != nil {
				t.Fatal(err)
			}
			text = append(text, v.Bytes(id)...)
		}
	}
}

// Texts in which few words are refused: masks take them out of those of many tokens.
func TestMaskOfRefusedWords(t *testing.T) {
	v := NewVocabulary(grammartest.Tokens(40000), nil)
	for schema, texts := range map[string][]string{
		`{"oneOf": [{"pattern": "ser"}, {"pattern": "mak"}, {"pattern": "min"}, {"pattern": "si"}], "type": "string"}`: {
			`"`, `"a`, `"ma`, `"ser`, `"maker s`, `"Amin`},
		`{"type": "string", "not": {"pattern": "(?:the|[a-f]er|on$)"}}`:             {`"`, `"x th`, `"o`, `"co`},
		`{"type": "string", "minLength": 8, "maxLength": 8, "pattern": "[a-f]"}`:    {`"`, `"x`, `"xyz`, `"a`},
		`{"type": "string", "minLength": 5, "maxLength": 40, "pattern": "^[a-z]+"}`: {`"`, `"abc`},
	} {
		g, err := CompileSchema(context.Background(), []byte(schema))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			m, err := g.Matcher(v, -1)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range []byte(text) {
				if err := m.Accept(int32(b)); err != nil {
					t.Fatalf("%s: after %q: %v", schema, text, err)
				}
			}
			if len(checkMask(t, m, v, -1, []byte(text))) == 0 {
				t.Errorf("%s: no token after %q", schema, text)
			}
		}
	}
}
