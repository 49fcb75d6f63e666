package grammar

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/ingotml/ingot/grammar/automaton"
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
			bytes, places := g.automaton(v).Size()
			if bytes > 8*limits.GrammarCache {
				t.Errorf("the cache has %d bytes, want at most %d", bytes, 8*limits.GrammarCache)
			}
			if places > automaton.MaxPlaces {
				t.Fatalf("a state has %d places", places)
			}
		})
	}
}
