package parse

import (
	"errors"
	"github.com/ingotml/ingot/chat/parse/calls"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/grammar"
)

// headers expands short headers: A( analysis, C( commentary, F( final, and )E, )R and )L the ends of a message, a
// response and a call.
func headers(s string) string {
	return strings.NewReplacer(
		"A(", "<|channel|>analysis<|message|>", "C(", "<|channel|>commentary<|message|>",
		"F(", "<|channel|>final<|message|>", ")E", "<|end|><|start|>assistant", ")R", "<|return|>", ")L", "<|call|>",
	).Replace(s)
}

const callF = "<|channel|>commentary to=functions.f <|constrain|>json<|message|>"

func TestHarmony(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"F(Hello.)R", `C"Hello."`},
		{"F(Hello.", `C"Hello."`},
		{"A(Hm, é.)EF(Hello é.)R", `T"Hm, é." C"Hello é."`},
		{"A(one)EA(two)EF( x \n", `T"one\n\ntwo" C" x \n"`},
		{"C(Let me look.)E" + callF + `{"a": 1})L`, `C"Let me look." f{"a":1}`},
		{"A(I call f.)E" + callF + `{"a": "<b>"}`, `T"I call f." f{"a":"<b>"}`},
		{"A(x)E to=functions.f<|channel|>commentary json<|message|>{})L", `T"x" f{}`},
		{" to=functions.f<|channel|>commentary <|constrain|>json<|message|>{}", `f{}`},
		{"assistant to=functions.f<|channel|>commentary<|message|>{})L", `f{}`},
		{"<|start|>assistant<|channel|>analysis to=functions.g code<|message|>{\"x\":[]})L", `g{"x":[]}`},
		{"A(x)E<|channel|>commentary to=functions.do.it-2<|message|>{})L", `T"x" do.it-2{}`},
		{"A(no end<|start|>assistantF(y", `T"no end" C"y"`},
		{"A(no endF(y", `T"no end" C"y"`},
		{"A()EF()R", ``},
		{"A(x", `T"x"`},
		{"A(x)E<|channel|>final", `T"x"`},
		{"A(x)E<|channel|>fin", `T"x"`},
		{"A(x<|mes", `T"x<|mes"`},
		{"F(a < b <| c <|en <|message|> <|constrain|>", `C"a < b <| c <|en <|message|> <|constrain|>"`},
		// Text without a header, as after the given start of an answer.
		{"Hello <world>.)R", `C"Hello <world>."`},
		{"<b>Hello</b>", `C"<b>Hello</b>"`},
		{"assistants help", `C"assistants help"`},
		{"A(x<|end|>Hello", `T"x" C"Hello"`},
		// Damaged and incomplete calls.
		{callF + `[1])L`, `D"` + strings.TrimSuffix(callF, "") + `[1]"`},
		{callF + `{"a":)LF(y`, `D"` + callF + `{\"a\":" C"\n\ny"`},
		{callF + `{"a":`, `I"` + callF + `{\"a\":"`},
		{callF, `I"` + callF + `"`},
	} {
		check(t, "harmony", offered, headers(c.in), headers(c.want))
	}
	check(t, "gpt-oss", Options{Thinking: true}, headers("more)EF(y)R"), `T"more" C"y"`)
}

// A call and a header that are too long become text, and the rest is read on.
func TestLongHarmony(t *testing.T) {
	long := strings.Repeat("x", maxHeader)
	check(t, "harmony", Options{Tools: offered.Tools, MaxCall: 8}, headers(callF+`{"a":"bcdefghij"})EF(y`),
		`D"`+callF+`{\"a\":\"bc" C"defghij\"}\n\ny"`)
	p := mustNew(t, "harmony", offered)
	events, err := feed(t, p, "<|channel|>"+long, long, headers("<|end|>A(z"))
	if want := `C"<|channel|>` + long + long + `" T"z"`; err != nil || describe(events) != want {
		t.Errorf("%d events, %v", len(events), err)
	}
}

func TestHarmonyOpens(t *testing.T) {
	for prompt, want := range map[string]bool{
		"<|start|>assistant": false, headers("<|start|>assistantA("): true, headers("A(x)E"): false,
	} {
		if got := Opens("harmony", Thinks("harmony"), prompt); got != want {
			t.Errorf("%q: %v", prompt, got)
		}
	}
}

// frames returns a vocabulary of single bytes and of harmony's tags, which are special tokens.
func frames() *grammar.Vocabulary {
	tokens := make([][]byte, 256+len(harmonyTags))
	var special []int32
	for id := range tokens {
		if id < 256 {
			tokens[id] = []byte{byte(id)}
		} else {
			special = append(special, int32(id))
		}
	}
	return grammar.NewVocabularyWith(tokens, grammar.VocabularyOptions{
		Special: special,
		ID: func(token string) (int32, bool) {
			i := slices.Index(harmonyTags, token)
			return int32(256 + i), i >= 0
		},
	})
}

// writeFrames generates a random text of a grammar.
func writeFrames(t *testing.T, g *grammar.Grammar, v *grammar.Vocabulary, r *rand.Rand) string {
	t.Helper()
	m, err := g.Matcher(v, -1)
	if err != nil {
		t.Fatal(err)
	}
	budget, text := m.Fewest()+r.IntN(200), ""
	bits := make([]uint32, grammar.Words(v.Size()))
	for n := 0; ; n++ {
		if m.Done() && r.IntN(4) == 0 || !m.Mask(bits, budget-n) {
			return text
		}
		var ids []int32
		for id := range int32(v.Size()) {
			if bits[id/32]>>(id%32)&1 != 0 && (id >= ' ' && id < 127 || id >= 256) {
				ids = append(ids, id)
			}
		}
		id := ids[r.IntN(len(ids))]
		if err := m.Accept(id); err != nil {
			t.Fatal(err)
		}
		if id < 256 {
			text += string(rune(id))
		} else {
			text += harmonyTags[id-256]
		}
	}
}

// The parser accepts all responses that the grammar generates: calls behind thinking, and answers behind thinking.
func TestHarmonyGrammar(t *testing.T) {
	v, r := frames(), rand.New(rand.NewPCG(3, 31))
	g, err := CallGrammar("harmony", []calls.Offer{strictTool, {Tool: weather}}, false)
	if err != nil || g.Open != "" {
		t.Fatal(err, g.Open)
	}
	described, both := compile(t, g.Rules, "calls"), compile(t, g.Rules, "calls | "+g.Final+` %json {"type":"integer"}`)
	thoughts, strict, finals := 0, 0, 0
	for i := range 200 {
		text := ""
		if i%2 == 0 {
			text = writeFrames(t, described, v, r)
		} else {
			text = writeFrames(t, both, v, r)
		}
		events, err := feed(t, mustNew(t, "harmony", offered), text)
		if err != nil || len(events) == 0 {
			t.Fatalf("%q: %v", text, err)
		}
		switch last := events[len(events)-1]; {
		case last.Kind == Call && last.Call.Name == strictTool.Name:
			strict++
			checkStrict(t, text, last.Call.Arguments)
		case last.Kind == Call && last.Call.Name == weather.Name:
		case last.Kind == Content && i%2 == 1 && strings.HasSuffix(text, harmonyFinal+last.Text):
			finals++ // the content is the answer alone
		default:
			t.Fatalf("%q: %s", text, describe(events))
		}
		if events[0].Kind == Thinking {
			thoughts++
		}
	}
	if thoughts == 0 || strict == 0 || finals == 0 {
		t.Errorf("%d thoughts, %d calls of the strict tool, %d answers", thoughts, strict, finals)
	}
	rules, tag := FinalRules("gpt-oss")
	if rules == "" || tag != harmonyFinal {
		t.Errorf("rules %q, tag %q", rules, tag)
	}
	if rules, tag := FinalRules("hermes"); rules != "" || tag != "" {
		t.Errorf("hermes: rules %q, tag %q", rules, tag)
	}
	if _, err := CallGrammar("harmony", nil, true); !errors.Is(err, calls.ErrNoGrammar) {
		t.Errorf("no tools: %v", err)
	}
}
