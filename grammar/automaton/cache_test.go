package automaton

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ingotml/ingot/grammar/ebnf"
	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/grammartest"
	"github.com/ingotml/ingot/grammar/jsontext"
	"github.com/ingotml/ingot/grammar/program"
	"github.com/ingotml/ingot/grammar/schema"
	"github.com/ingotml/ingot/grammar/vocabulary"
	"github.com/ingotml/ingot/internal/limits"
)

// begin returns a matcher of an expression whose cache is empty.
func begin(t *testing.T, e *expr.Expr, v *vocabulary.Vocabulary) *Matcher {
	t.Helper()
	p, err := program.Compile(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(p, v).Matcher(-1)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func tokens() *vocabulary.Vocabulary {
	return vocabulary.New(grammartest.Tokens(4096), vocabulary.Options{})
}

// A long text fills the cache, which then starts anew: its estimate of what it keeps stays within the limit, but for
// one mask and what it takes to find it.
func TestCacheLimit(t *testing.T) {
	v := tokens()
	m := begin(t, jsontext.NewRules().Value(), v)
	a := m.a
	bits := make([]uint32, vocabulary.Words(v.Size()))
	first := a.generation
	for i := 0; a.generation < first+2; i++ { // ever deeper nesting
		if i > limits.GrammarCache/100 {
			t.Fatalf("%d states are within %d bytes", i, limits.GrammarCache)
		}
		m.Mask(bits, -1)
		if err := m.Accept('['); err != nil {
			t.Fatal(err)
		}
		if a.bytes > limits.GrammarCache+1<<20 {
			t.Fatalf("the cache has %d bytes", a.bytes)
		}
	}
}

// The cache stays within its limit for texts of any length. States from before a reset remain usable.
func TestCacheReset(t *testing.T) {
	v := tokens()
	m := begin(t, jsontext.NewRules().Value(), v)
	a := m.a
	bits := make([]uint32, vocabulary.Words(v.Size()))
	generations := map[uint32]bool{}
	for i := range 400 { // ever deeper nesting
		if i%50 == 49 {
			a.bytes = maxBytes + 1
		}
		if m.Mask(bits, -1); bits['['>>5]&(1<<('['&31)) == 0 {
			t.Fatalf("after %d brackets another one is not allowed", i)
		}
		if err := m.Accept('['); err != nil {
			t.Fatal(err)
		}
		generations[a.generation] = true
	}
	for i := range 400 {
		if err := m.Accept(']'); err != nil {
			t.Fatalf("bracket %d: %v", i, err)
		}
	}
	if !m.Done() || len(generations) < 8 {
		t.Errorf("done: %v after %d resets", m.Done(), len(generations))
	}
}

// A state of many places keeps its stacks when the cache starts anew, also those that were pushed last before.
func TestCacheResetKeepsStacks(t *testing.T) {
	v := tokens()
	source := `root ::= "(" low ")" | "(" high "]"` + "\nlow ::= "
	for b := 'a'; b < 'k'; b++ {
		source += fmt.Sprintf(`"%c1" | `, b)
	}
	source += "\"z1\"\nhigh ::= "
	for b := 'k'; b < 'u'; b++ {
		source += fmt.Sprintf(`"%c2" | `, b)
	}
	source += `"y2"`
	compile := func() *expr.Expr {
		e, _, err := ebnf.Compile(t.Context(), source, schema.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	untouched := begin(t, compile(), v).a
	bits, want := make([]uint32, vocabulary.Words(v.Size())), make([]uint32, vocabulary.Words(v.Size()))
	for _, text := range []string{"(a1)", "(z1)", "(k2]", "(y2]"} {
		for at := range len(text) {
			m := begin(t, compile(), v) // its frames are those of this text
			other, err := untouched.Matcher(-1)
			if err != nil {
				t.Fatal(err)
			}
			for i := range len(text) {
				if i == at {
					if i == 1 && len(m.s.places) < 16 {
						t.Fatalf("%d places: too few to be sorted by their numbers", len(m.s.places))
					}
					m.a.bytes = maxBytes + 1
				}
				if i >= at {
					m.Mask(bits, -1)
					other.Mask(want, -1)
					if !slices.Equal(bits, want) || m.Done() || other.Done() {
						t.Fatalf("%s: the mask after %d bytes differs if the cache restarts after %d", text, i, at)
					}
				}
				if m.Accept(int32(text[i])) != nil || other.Accept(int32(text[i])) != nil {
					t.Fatalf("%s: byte %d is refused if the cache restarts after %d", text, i, at)
				}
			}
			if !m.Done() {
				t.Errorf("%s is not complete if the cache restarts after %d", text, at)
			}
		}
	}
}
