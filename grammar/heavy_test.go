package grammar

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ingotml/ingot/grammar/grammartest"
	"github.com/ingotml/ingot/internal/limits"
)

// Grammars with very many places per state complete their texts within the limits of time and memory.
func TestHeavyGrammars(t *testing.T) {
	v := NewVocabulary(grammartest.Tokens(4096), nil)
	for name, source := range map[string]string{
		"counts":     `root ::= ([a-z ]{0,1000} "x"?){0,1000} "y"`,
		"nested":     `root ::= (([a-z]{0,100} " "?){0,100}){0,100} "y"`,
		"subsets":    `root ::= (.* "a" .{10} | .* "e" .{14} | .* " " .{18})+`,
		"palindrome": `root ::= "a" root "a" | [a-z] root [a-z] | " " root " " | "b"`,
		"doubles":    `root ::= "a" root "a" | [a-z] root [a-z] | [a-z] root [0-9] | "y"`,
		"ambiguous":  "root ::= x x x x x x\nx ::= [a-z ]* y\ny ::= [a-z ]* | [a-z]+ y",
	} {
		t.Run(name, func(t *testing.T) {
			g, err := CompileEBNF(context.Background(), source)
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(1, 1))
			for i := range max(1, 2/raceFactor) {
				write(t, g, v, fewest(t, g, v)+10*i, r)
			}
			a := g.automaton(v)
			if a.bytes > 8*maxBytes {
				t.Errorf("the cache has %d bytes, want at most %d", a.bytes, 8*maxBytes)
			}
			for _, slot := range a.states.slots {
				if slot.s != nil && len(slot.s.places) > maxPlaces {
					t.Fatalf("a state has %d places", len(slot.s.places))
				}
			}
		})
	}
}

// A long text fills the cache, which then starts anew: its estimate of what it keeps stays within the limit, but for
// one mask and what it takes to find it.
func TestCacheLimit(t *testing.T) {
	v := smallVocabulary()
	g := JSON()
	m, err := g.Matcher(v, -1)
	if err != nil {
		t.Fatal(err)
	}
	a := g.automaton(v)
	bits := make([]uint32, Words(v.Size()))
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
	v := smallVocabulary()
	g := JSON()
	m, err := g.Matcher(v, -1)
	if err != nil {
		t.Fatal(err)
	}
	a := g.automaton(v)
	bits := make([]uint32, Words(v.Size()))
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
	v := smallVocabulary()
	source := `root ::= "(" low ")" | "(" high "]"` + "\nlow ::= "
	for b := 'a'; b < 'k'; b++ {
		source += fmt.Sprintf(`"%c1" | `, b)
	}
	source += "\"z1\"\nhigh ::= "
	for b := 'k'; b < 'u'; b++ {
		source += fmt.Sprintf(`"%c2" | `, b)
	}
	source += `"y2"`
	compile := func() *Grammar {
		g, err := CompileEBNF(t.Context(), source)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	untouched := compile()
	bits, want := make([]uint32, Words(v.Size())), make([]uint32, Words(v.Size()))
	for _, text := range []string{"(a1)", "(z1)", "(k2]", "(y2]"} {
		for at := range len(text) {
			g := compile() // its frames are those of this text
			m, err := g.Matcher(v, -1)
			if err != nil {
				t.Fatal(err)
			}
			other, err := untouched.Matcher(v, -1)
			if err != nil {
				t.Fatal(err)
			}
			for i := range len(text) {
				if i == at {
					if i == 1 && len(m.s.places) < 16 {
						t.Fatalf("%d places: too few to be sorted by their numbers", len(m.s.places))
					}
					g.automaton(v).bytes = maxBytes + 1
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
