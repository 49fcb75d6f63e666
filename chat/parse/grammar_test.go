package parse

import (
	"context"
	"encoding/json"
	"errors"
	"github.com/ingotml/ingot/chat/parse/calls"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/ingotml/ingot/grammar"
)

// letters returns a vocabulary of single bytes.
func letters() *grammar.Vocabulary {
	tokens := make([][]byte, 256)
	for b := range tokens {
		tokens[b] = []byte{byte(b)}
	}
	return grammar.NewVocabulary(tokens, nil)
}

// write generates a random text of a grammar.
func write(t *testing.T, g *grammar.Grammar, v *grammar.Vocabulary, r *rand.Rand) string {
	t.Helper()
	m, err := g.Matcher(v, -1)
	if err != nil {
		t.Fatal(err)
	}
	budget := m.Fewest() + r.IntN(200)
	var text []byte
	bits := make([]uint32, grammar.Words(v.Size()))
	for {
		if m.Done() && r.IntN(4) == 0 {
			return string(text)
		}
		if !m.Mask(bits, budget-len(text)) {
			return string(text)
		}
		var ids []int32
		for id := range int32(v.Size()) {
			if bits[id/32]>>(id%32)&1 != 0 && (id >= ' ' || id == '\n') {
				ids = append(ids, id)
			}
		}
		id := ids[r.IntN(len(ids))]
		if err := m.Accept(id); err != nil {
			t.Fatal(err)
		}
		text = append(text, byte(id))
	}
}

func compile(t *testing.T, rules, root string) *grammar.Grammar {
	t.Helper()
	g, err := grammar.CompileEBNF(context.Background(), rules+"root ::= "+root)
	if err != nil {
		t.Fatalf("%v\n%s", err, rules)
	}
	return g
}

var strictTool = calls.Offer{Strict: true, Tool: calls.Tool{Name: "do.it-2", Parameters: json.RawMessage(`{
	"type":"object","$defs":{"n":{"type":"integer","minimum":0,"maximum":9999}},
	"properties":{"city":{"type":"string","enum":["a\nb","c<d"]},"n":{"$ref":"#/$defs/n"},"any":{"type":"string"},
		"when":{"type":["number","null"]},"list":{"type":"array","items":{"$ref":"#/$defs/n"}},
	"ok":{"type":"boolean"}},"required":["city","when","list"],"additionalProperties":false}`)}}

// A format's parser accepts all texts that its grammar generates.
func TestCallGrammar(t *testing.T) {
	v := letters()
	offers := []calls.Offer{strictTool, {Tool: weather}, {Tool: calls.Tool{Name: "f"}}}
	tools := []calls.Tool{strictTool.Tool, weather, {Name: "f"}}
	for _, name := range Names() {
		if n, _ := Abilities(name); !n {
			if _, err := CallGrammar(name, offers, false); !errors.Is(err, calls.ErrNoGrammar) {
				t.Errorf("%s has a grammar, or the error is %v", name, err)
			}
			continue
		}
		if name == "harmony" {
			continue // its tags are tokens; see TestHarmonyGrammar
		}
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			for _, c := range []struct {
				offers []calls.Offer
				once   bool
			}{{offers, false}, {offers[:1], true}, {offers[1:], true}} {
				once := c.once
				g, err := CallGrammar(name, c.offers, once)
				if err != nil {
					t.Fatal(err)
				}
				whole, rest := compile(t, g.Rules, "calls"), compile(t, g.Rules, "rest")
				several, strict := 0, 0
				for range 24 {
					text := g.Open + write(t, rest, v, r)
					if r.IntN(2) == 0 {
						text = write(t, whole, v, r)
					}
					events, err := feed(t, mustNew(t, name, Options{Tools: tools}), text)
					if err != nil {
						t.Fatalf("%q: %v", text, err)
					}
					for _, e := range events {
						if e.Kind != Call {
							t.Fatalf("%q: %s", text, describe(events))
						}
						if e.Call.Name == strictTool.Name {
							strict++
							checkStrict(t, text, e.Call.Arguments)
						} else if e.Call.Name != "f" && e.Call.Name != weather.Name || !json.Valid(e.Call.Arguments) {
							t.Fatalf("%q: %s", text, describe(events))
						}
					}
					if len(events) == 0 || once && len(events) != 1 {
						t.Fatalf("%q: %d calls", text, len(events))
					}
					if len(events) > 1 {
						several++
					}
				}
				if several == 0 && !once || strict == 0 && len(c.offers) == 1 {
					t.Errorf("once %v: %d texts have several calls, %d calls are of the strict tool", once, several, strict)
				}
			}
		})
	}
	list := calls.Tool{Name: "f", Parameters: json.RawMessage(`[]`)}
	if _, err := CallGrammar("hermes", []calls.Offer{{Strict: true, Tool: list}},
		false); err == nil {
		t.Error("a schema that is not an object was accepted")
	}
	_, err := CallGrammar("qwen3.5", []calls.Offer{{Tool: calls.Tool{Name: "<f>"}}}, false)
	if !errors.Is(err, calls.ErrNoGrammar) {
		t.Errorf("a tool name with tags: %v", err)
	}
	for schema, open := range map[string]bool{`{"type":"object"}`: true, `{"additionalProperties":false}`: false} {
		tool := calls.Offer{Strict: true, Tool: calls.Tool{Name: "f", Parameters: json.RawMessage(schema)}}
		g, err := CallGrammar("qwen3.5", []calls.Offer{tool}, true)
		if err != nil || strings.Contains(g.Rules, " key ") != open {
			t.Errorf("%s: %v; other arguments %v:\n%s", schema, err, open, g.Rules)
		}
	}
	if _, err := CallGrammar("hermes", nil, false); !errors.Is(err, calls.ErrNoGrammar) {
		t.Errorf("no tools: %v", err)
	}
}

// checkStrict checks that arguments match the schema of strictTool.
func checkStrict(t *testing.T, text string, arguments json.RawMessage) {
	t.Helper()
	var a struct {
		City *string
		N    *int
		Any  *string
		When *float64
		List *[]int
		OK   *bool
	}
	d := json.NewDecoder(strings.NewReader(string(arguments)))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil || a.City == nil || *a.City != "a\nb" && *a.City != "c<d" || a.List == nil ||
		!strings.Contains(string(arguments), `"when":`) {
		t.Fatalf("%q: arguments %s: %v", text, arguments, err)
	}
}

func TestWithout(t *testing.T) {
	g := compile(t, "text ::= "+calls.Without("</ab>")+"\n", `"[" text "</ab>"`)
	v := letters()
	for text, want := range map[string]bool{
		"[</ab>": true, "[x</ab>": true, "[</a</ab>": true, "[<<</ab>": true, "[</ab</ab>": true, "[</</ab>": true,
		"[</a>\n<b></ab>": true, "[</ax</ab>": true,
		"[</ab></ab>": false, "[x</ab>y</ab>": false, "[": false, "[</ab": false, "[<</ab></ab>": false,
	} {
		m, err := g.Matcher(v, -1)
		if err != nil {
			t.Fatal(err)
		}
		got := true
		for _, b := range []byte(text) {
			got = got && m.Accept(int32(b)) == nil
		}
		if got = got && m.Done(); got != want {
			t.Errorf("%q: accepted %v, want %v", text, got, want)
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	end := regexp.MustCompile(`</ab>`)
	for range 50 {
		if text := write(t, g, v, r); len(end.FindAllString(text, -1)) != 1 {
			t.Errorf("%q", text)
		}
	}
}
