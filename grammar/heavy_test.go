package grammar

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/ingotml/ingot/grammar/grammartest"
)

// Grammars in which a text can be at very many places at once are written within bounds of time and memory, and to their end.
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
				t.Errorf("%d bytes are kept, at most %d", a.bytes, 8*maxBytes)
			}
			for _, s := range a.states {
				if len(s.places) > maxPlaces {
					t.Fatalf("a state has %d places", len(s.places))
				}
			}
		})
	}
}

// What is cached stays within its bound however long a text grows, and states from before a new start go on.
func TestCacheStartsAnew(t *testing.T) {
	v := smallVocabulary()
	g := JSON()
	m, err := g.Matcher(v, -1)
	if err != nil {
		t.Fatal(err)
	}
	a := g.automaton(v)
	bits := make([]uint32, Words(v.Size()))
	ages := map[uint32]bool{}
	for i := range 400 { // ever deeper
		if i%50 == 49 {
			a.bytes = maxBytes + 1
		}
		if m.Mask(bits, -1); bits['['>>5]&(1<<('['&31)) == 0 {
			t.Fatalf("after %d brackets no other is allowed", i)
		}
		if err := m.Accept('['); err != nil {
			t.Fatal(err)
		}
		ages[a.age] = true
	}
	for i := range 400 {
		if err := m.Accept(']'); err != nil {
			t.Fatalf("bracket %d: %v", i, err)
		}
	}
	if !m.Done() || len(ages) < 8 {
		t.Errorf("done: %v after %d starts", m.Done(), len(ages))
	}
}
