package grammar

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestEBNF(t *testing.T) {
	v := smallVocabulary()
	for _, c := range []struct {
		source  string
		yes, no []string
	}{
		{`root ::= "ab" | 'c'`, []string{"ab", "c"}, []string{"a", "abc", ""}},
		{`root ::= "a"? "b"* "c"+ "d"{2} "e"{1,2} "f"{2,}`, []string{"cddeff", "abbccddeefff"},
			[]string{"cdeff", "cddeeeff", "ddeff"}},
		{`a = b ("," b)* ; b = [a-z_]+ ;`, []string{"x", "x,y_z"}, []string{",", "x,"}},
		{"list ::= item (\", \" item)* # of items\n# nothing\nroot ::= \"[\" list \"]\"\nitem ::= [0-9] | root",
			[]string{"[1]", "[1, [2, 3]]"}, []string{"1", "[]"}},
		{`root ::= root "+" t | t
t ::= [0-9]+`, []string{"1", "1+2+33"}, []string{"1+", "+1"}},
		{"root ::= a\na ::= b \"x\" | \"w\"\nb ::= a | \"y\"", []string{"w", "yx", "wx", "yxxx"}, []string{"y", "x", "xw"}},
		{"root ::= (a \"c\" | b)+\na ::= (b | \"1\") \"x\" | d{2}\nb ::= a \"y\" | b \"z\" | \"2\"\n" +
			"d ::= a \"d\" | \"3\"",
			[]string{"2", "1xc", "2xyzz", "33y", "1xd3c2", "33yxd3c", "33d3y"}, []string{"1x", "y", "3c", "1xd"}},
		{`root ::= "(" root ")" root | ""`, []string{"", "()", "(())()"}, []string{"(", ")("}},
		{`root ::= [^"\n\x00-\x1f] . [\]\-\^é]`, []string{"aé]", "日x-", "ab^"}, []string{"\"ab", "a\n]", "ab"}},
		{`root ::= "\"\\\n\u00e9\U0001F600\x41"`, []string{"\"\\\né😀A"}, []string{"x"}},
		{`root ::= "x" %json {"type": "integer", "minimum": 5} y | %json{"$ref": "#/$defs/a", "$defs": {"a": {"const": "}"}}}+
y ::= " " %json {"enum": [true]}`, []string{"x5 true", "x12 true", `"}"`, `"}""}"`}, []string{"x4 true", "x5", `""`}},
		{`root ::= ("a" | "b" ("c" | ))+`, []string{"abcb", "a"}, []string{"c", ""}},
	} {
		g, err := CompileEBNF(context.Background(), c.source)
		if err != nil {
			t.Errorf("%s: %v", c.source, err)
			continue
		}
		checkTexts(t, c.source, c.yes, c.no, func(text string) bool { return accepts(t, g, v, text) })
	}
}

func TestEBNFErrors(t *testing.T) {
	for _, c := range []struct {
		source string
		kind   error
		says   string
	}{
		{"", ErrInvalid, "no rule"},
		{"root", ErrInvalid, "line 1: expected ::="},
		{"root ::= x", ErrInvalid, "rule x is not defined"},
		{"root ::= %x", ErrInvalid, "expected %json"},
		{"root ::= %json {", ErrInvalid, "line 1"},
		{"root ::= \"a\"\nb ::= %json {\"$ref\": \"x.json\"}", ErrUnsupported, "line 2"},
		{"root ::= %json false", ErrInvalid, "no value"},
		{"root ::= \"a\"\nroot ::= \"b\"", ErrInvalid, "line 2: rule root is defined twice"},
		{`root ::= "a`, ErrInvalid, "no closing"},
		{`root ::= [a`, ErrInvalid, "no closing ]"},
		{`root ::= []`, ErrInvalid, "empty"},
		{`root ::= [z-a]`, ErrInvalid, "empty"},
		{`root ::= ("a"`, ErrInvalid, "no closing )"},
		{`root ::= "a"{2,1}`, ErrInvalid, "{2,1}"},
		{`root ::= "a"{99999999}`, ErrLimit, "99999999"},
		{`root ::= "\q"`, ErrInvalid, `\q`},
		{`root ::= "a" ~`, ErrInvalid, `'~'`},
		{"root ::= a\na ::= b \"x\"\nb ::= \"z\"? a | \"y\"", ErrUnsupported,
			"rule a is left-recursive (root -> a -> b -> a)"},
		{`root ::= root`, ErrInvalid, "no finite text"},
		{`root ::= "a" root`, ErrInvalid, "no finite text"},
		{"root ::= " + strings.Repeat("(", 300) + `"a"` + strings.Repeat(")", 300), ErrLimit, "levels"},
		{"root ::= \"\xff\"", ErrInvalid, "UTF-8"},
	} {
		_, err := CompileEBNF(context.Background(), c.source)
		if err == nil || !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%.60q: got %v, want %v with %q", c.source, err, c.kind, c.says)
		}
	}
}

func TestRegexErrors(t *testing.T) {
	for _, c := range []struct {
		pattern string
		kind    error
		says    string
	}{
		{`a(`, ErrInvalid, "a("},
		{`\bx`, ErrUnsupported, `\b`},
		{`a^b`, ErrUnsupported, "anchor ^"},
		{`(?=x)`, ErrUnsupported, "look-around"},
		{`(a)\1`, ErrUnsupported, `\1`},
		{`a{5000}`, ErrLimit, "a{5000}"},
		{`[^\x{0}-\x{10FFFF}]`, ErrInvalid, ""},
	} {
		_, err := CompileRegex(context.Background(), c.pattern)
		if err == nil || !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %v with %q", c.pattern, err, c.kind, c.says)
		}
	}
}

// A budget smaller than the shortest text is refused at the start.
func TestBudget(t *testing.T) {
	v := smallVocabulary()
	g, err := CompileSchema(context.Background(), []byte(`{"type": "object", "properties": {"name": {"type": `+
		`"string"}}, "required": ["name"]}`))
	if err != nil {
		t.Fatal(err)
	}
	for budget := range 3 { // {"name": " and "}
		_, err := g.Matcher(v, budget)
		if want := budget < 2; errors.Is(err, ErrBudget) != want {
			t.Errorf("a budget of %d: %v", budget, err)
		}
	}
	missing := [][]byte{[]byte("a"), []byte("b")}
	if _, err := g.Matcher(NewVocabulary(missing, nil), -1); !errors.Is(err, ErrVocabulary) {
		t.Errorf("a vocabulary without braces: %v", err)
	}
}

// Grammars that look huge are refused, or compile because they are small in fact.
func TestLimits(t *testing.T) {
	v := smallVocabulary()
	chain := func(rules int) string {
		var b strings.Builder
		for i := range rules {
			fmt.Fprintf(&b, "r%d ::= \"x\" r%d\n", i, i+1)
		}
		fmt.Fprintf(&b, "r%d ::= \"y\"", rules)
		return b.String()
	}
	doubles := "r0 ::= \"x\"\nroot ::= r90\n"
	for i := range 90 {
		doubles += fmt.Sprintf("r%d ::= r%d r%d\n", i+1, i, i)
	}
	for _, c := range []struct {
		name, source string
		kind         error
	}{
		{"a chain of rules", chain(400), nil},
		{"too many rules", chain(3000), ErrLimit},
		{"a text of 2^90 bytes", doubles, ErrLimit},
		{"counts in counts", `root ::= ((("a"?){10000000}){10000000}){10000000}`, nil},
		{"repetitions of nothing", "root ::= " + strings.Repeat("(", 200) + `"a"?` + strings.Repeat(")+", 200), nil},
		{"too many parts that may be empty", "root ::= (" + strings.Repeat(`"a"? `, 1100) + ")*", ErrLimit},
		{"too many places", "root ::= " + strings.Repeat(`("a"{40} "b"?){2} [a-z]{30} `, 9000), ErrLimit},
	} {
		g, err := CompileEBNF(context.Background(), c.source)
		if err == nil {
			var m *Matcher
			if m, err = g.Matcher(v, -1); err == nil && !m.Mask(make([]uint32, Words(v.Size())), -1) {
				t.Errorf("%s: the first mask is empty", c.name)
			}
		}
		if c.kind == nil && err != nil || !errors.Is(err, c.kind) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.kind)
		}
	}
}

// Forced returns text without alternatives, except a last token that may extend past it.
func TestForced(t *testing.T) {
	v := smallVocabulary()
	text := func(m *Matcher) (s string) {
		for _, id := range m.Forced(-1) {
			s += string(v.Bytes(id)) + "|"
		}
		return s
	}
	g, err := CompileSchema(context.Background(), []byte(`{"type": "object", "properties": {"id": {"const": 12}, `+
		`"name": {"type": "string"}}, "required": ["id", "name"]}`))
	if err != nil {
		t.Fatal(err)
	}
	m, err := g.Matcher(v, -1)
	if err != nil {
		t.Fatal(err)
	}
	// The token `": "` extends into the string, so the model chooses there.
	if got, want := text(m), `{"|id|": |12|, "|name|`; got != want {
		t.Errorf("forced %s, want %s", got, want)
	}
	for _, id := range m.Forced(-1) {
		if err := m.Accept(id); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range []byte(`": "x`) {
		if err := m.Accept(int32(b)); err != nil {
			t.Fatal(err)
		}
	}
	if got := text(m); got != "" {
		t.Errorf("%s is forced inside a string", got)
	}
}

// The options of schemas apply to those in a grammar.
func TestEBNFSchemaOptions(t *testing.T) {
	const list = `%json {"not": {"uniqueItems": true}}`
	const repeated = `root ::= "a" ` + list + ` | ` + list
	if _, err := CompileEBNF(context.Background(), repeated); !errors.Is(err, ErrUnsupported) {
		t.Errorf("uniqueItems: got %v, want %v", err, ErrUnsupported)
	}
	g, err := CompileEBNFWith(context.Background(), repeated, SchemaOptions{BestEffort: true})
	if err != nil {
		t.Fatal(err)
	}
	if out := g.LeftOut(); len(out) != 1 || !strings.Contains(out[0], "uniqueItems") {
		t.Errorf("left out: %q, want uniqueItems once", out)
	}
	const unknown = `root ::= %json {"colour": "red"}`
	if _, err := CompileEBNF(context.Background(), unknown); err != nil {
		t.Error(err)
	}
	_, err = CompileEBNFWith(context.Background(), unknown, SchemaOptions{Strict: true})
	if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "colour") {
		t.Errorf("strict: got %v", err)
	}
}
