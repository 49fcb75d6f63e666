package grammar

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// checkErrors fails unless err is of a documented kind.
func checkErrors(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrUnsupported) && !errors.Is(err, ErrLimit) {
		t.Fatalf("%v is not one of this package's errors", err)
	}
}

// try generates a few texts of a grammar, unless its shortest is too long, and checks masks on the way.
func try(t *testing.T, g *Grammar, v *Vocabulary, seed uint64, check func(text string) bool) {
	t.Helper()
	m, err := g.Matcher(v, -1)
	if errors.Is(err, ErrVocabulary) { // tokens that v does not have
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	least := m.Fewest()
	if least > 200 {
		return
	}
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range 3 {
		if text := write(t, g, v, least+10*i, r); !check(text) {
			t.Fatalf("wrote %q", text)
		}
	}
	tryMasks(t, m, v, r)
}

// tryMasks checks masks along a random text.
func tryMasks(t *testing.T, m *Matcher, v *Vocabulary, r *rand.Rand) {
	t.Helper()
	var text []byte
	for range 4 {
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

func FuzzSchema(f *testing.F) {
	for _, s := range []string{`true`, `{"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}}, ` +
		`"required": ["a"], "additionalProperties": {"type": "null"}}`,
		`{"anyOf": [{"$ref": "#/$defs/x"}, {"enum": [1, "é"]}], "$defs": {"x": {"type": "array", "items": {"$ref": "#"}, ` +
			`"maxItems": 3}}}`,
		`{"type": "number", "multipleOf": 0.5, "maximum": 7}`, `{"type": "string", "pattern": "^a+$", "minLength": 2}`,
		`{"oneOf": [{"const": 1}, {"const": "a"}], "nullable": true}`,
		`{"type": "object", "propertyNames": {"maxLength": 3}, "minProperties": 1}`,
		`{"prefixItems": [{}, {"format": "date"}], "type": ["array", "null"], "minItems": 1}`} {
		f.Add([]byte(s), uint64(1))
	}
	v := smallVocabulary()
	f.Fuzz(func(t *testing.T, source []byte, seed uint64) {
		if len(source) > 2000 {
			return
		}
		g, err := CompileSchema(context.Background(), source)
		if err != nil {
			checkErrors(t, err)
			return
		}
		try(t, g, v, seed, func(text string) bool { return json.Valid([]byte(text)) })
	})
}

func FuzzRegex(f *testing.F) {
	for _, s := range []string{`a|b*`, `(x{2,9}y?){3}`, `[^a-z]\p{Greek}`, `(?i)k`, `.{5,}`, `((a*)*|b)+`, `a{0}`,
		`\x{10ffff}`} {
		f.Add(s, uint64(1))
	}
	v := smallVocabulary()
	f.Fuzz(func(t *testing.T, pattern string, seed uint64) {
		if len(pattern) > 300 {
			return
		}
		g, err := CompileRegex(context.Background(), pattern)
		if err != nil {
			checkErrors(t, err)
			return
		}
		re, err := regexp.Compile(`^(?:` + pattern + `)$`)
		if err != nil {
			return // too large for RE2
		}
		try(t, g, v, seed, func(text string) bool { return utf8.ValidString(text) && re.MatchString(text) })
	})
}

func FuzzEBNF(f *testing.F) {
	for _, s := range []string{`root ::= "a" root | 'b'`, `e ::= e "+" t | t; t ::= [0-9]{1,3} | "(" e ")"`,
		"a = b? # x\nb = [^\\n\"]+ .", `root ::= ("x" | )* "y"`, `root ::= (!<[97]> | "b")* <[98]>`} {
		f.Add(s, uint64(1))
	}
	v := smallVocabulary()
	f.Fuzz(func(t *testing.T, source string, seed uint64) {
		if len(source) > 500 {
			return
		}
		g, err := CompileEBNF(context.Background(), source)
		if err != nil {
			checkErrors(t, err)
			return
		}
		try(t, g, v, seed, validUnlessTokens(source))
	})
}

// validUnlessTokens checks texts for UTF-8, which tokens that a source names need not be.
func validUnlessTokens(source string) func(string) bool {
	tokens := strings.ContainsAny(source, "<") || strings.Contains(source, "token")
	return func(text string) bool { return tokens || utf8.ValidString(text) }
}

func FuzzLark(f *testing.F) {
	for _, s := range []string{toolCalls, "start: e\ne: e \"+\" N | N\nN: /[0-9]/{1,3} & ~\"12\"\n%ignore / +/",
		"%import common (INT, WS)\nstart: (INT | <[97-99]>)* -> x\n| \"a\"i..\"c\"",
		`start: %regex {"substring_chars": "ab"}`} {
		f.Add(s, uint64(1))
	}
	v := smallVocabulary()
	f.Fuzz(func(t *testing.T, source string, seed uint64) {
		if len(source) > 500 {
			return
		}
		g, err := CompileLark(context.Background(), source, SchemaOptions{})
		if err != nil {
			checkErrors(t, err)
			return
		}
		if m, err := g.Matcher(v, -1); err == nil {
			tryMasks(t, m, v, rand.New(rand.NewPCG(seed, 1)))
		}
	})
}

func FuzzTags(f *testing.F) {
	for _, s := range []string{structural(`{"type": "triggered_tags", "excludes": ["a"], ` + functions + `}`),
		structural(`{"type": "or", "elements": [{"type": "any_text", "max_chars": 3}, {"type": "any_tokens"}]}`),
		structural(`{"type": "dispatch", "rules": [["a", {"type": "regex", "pattern": "b+"}]], "loop": false}`)} {
		f.Add(s, uint64(1))
	}
	v := smallVocabulary()
	f.Fuzz(func(t *testing.T, source string, seed uint64) {
		if len(source) > 1000 {
			return
		}
		g, err := CompileTags(context.Background(), []byte(source), SchemaOptions{})
		if err != nil {
			checkErrors(t, err)
			return
		}
		try(t, g, v, seed, validUnlessTokens(source))
	})
}
