package grammar

import (
	"context"
	"errors"
	"strings"
	"testing"
)

const toolCalls = `start: ( f_foo | f_bar )* f_end
f_end: TEXT
TEXT: /(.|\n)*/

f_foo_hd[lazy]: TEXT "<function"
f_foo: f_foo_hd "=foo>" %json { "type": "object" } "</function>"

f_bar_hd[lazy]: TEXT "<function"
f_bar: f_bar_hd "=bar>" /[0-9]+/ "</function>"`

// What LLGuidance 1.9.1 accepts, over single bytes.
func TestLark(t *testing.T) {
	v := smallVocabulary()
	for _, c := range []struct {
		source  string
		yes, no []string
	}{
		// The longest lexeme counts.
		{`start: /[a-z]+/ "abc"`, nil, []string{"xabc", "abc"}},
		{"start: \"if\" NAME\nNAME: /[a-z]+/", []string{"ifx"}, []string{"if"}},
		{"start: \"if\" NAME | NAME \"!\"\nNAME: /[a-z]+/\n%ignore \" \"", []string{"if x", "if!", "ifx!"},
			[]string{"ifx", " if x", "if x "}},
		{`start: "a" "ab" | "aa" "c"`, []string{"aac"}, []string{"aab"}},
		{"start: A | B\nA: \"a\" \"b\"\nB: A \"c\"", []string{"ab", "abc"}, []string{"a", "abcc"}},
		// Lazy lexemes end where they can.
		{"start: b \"!\"\nb[lazy]: /x.*y/", []string{"xy!", "xaay!"}, []string{"xyy!"}},
		{"start: b \"!\"\nb[suffix=\"y\", capture=\"n\"]: /x.*/", []string{"xy!", "xaay!"}, []string{"xyy!", "x!"}},
		{"a[suffix=/[0-9]+/]: /.*/\nstart: a \"x\"", []string{"ab1x"}, []string{"ab12x"}},
		{"a[lazy]: /x+/\nstart: a \"x\"", []string{"xx"}, []string{"x", "xxx"}},
		{toolCalls, []string{"hello", "", "a<funct", "a<function=bar>12</function>b",
			"a<function=foo>{}</function><function=bar>1</function>"},
			[]string{"a<function=baz>", "a<function", "<function=bar>", "a<function=bar>12</function>xx<function"}},
		// What is ignored stands between lexemes.
		{"%ignore \" \"\nstart: \"a\" \"b\"", []string{"ab", "a b", "a  b"}, []string{" ab", "ab ", "a  b  "}},
		{"%ignore /[ ]{1,2}/\nstart: \"a\" x?\nx: \"b\"", []string{"a ", "a   b", "a   ", "a"}, []string{" a", "ab "}},
		{"%ignore \" \"\nstart: b \"!\"\nb[lazy]: /x.*y/", []string{"xy !", "x y!"}, nil},
		{"%import common.ESCAPED_STRING\n%import common.WS\n%ignore WS\nstart: ESCAPED_STRING+",
			[]string{`"a" "b\""`, `"a""b"`}, []string{`"a`, ` "a"`}},
		// Terminals.
		{"start: A* \"b\"\nA: /a*/", []string{"b", "aab", "ab"}, []string{"a"}},
		{"start: A\nA: /a*/", []string{"", "aa"}, nil},
		{"start: A\nA: /[a-z]*/ & ~/(?s:.*)ab(?s:.*)/", []string{"ba", "acb"}, []string{"ab", "xaby"}},
		{"start: A B\nA: ~\"ab\" & /[a-z]{2}/\nB: \"!\"", []string{"ac!"}, []string{"ab!"}},
		{"start: C\nC: A & B | \"d\"\nA: /a|b/\nB: /b|c/", []string{"b", "d"}, []string{"a", "c"}},
		{`start: "a"i /b/i`, []string{"AB", "aB"}, []string{"a"}},
		{`start: "a".."c" "d"{2,3} "e"~2 "f"~0..1 "g"{,2} "h"{2,}`, []string{"bddeefgghh", "cdddeehhh"},
			[]string{"ddeehh", "bddeegggh", "bddeeh"}},
		{`start: %regex {"substring_words":"foo bar. baz"} "!"`, []string{"foo bar!", "bar.!", "!"}, []string{"oo!"}},
		{`start: %regex {"substring_chunks":["abc","de","fg"]} "!"`, []string{"abcde!", "defg!", "!"},
			[]string{"ab!", "abcfg!"}},
		{`start: %regex {"substring_chars":"ab c"} "!"`, []string{"b c!"}, []string{"ac!"}},
		{`start: /\d+/ "x"`, []string{"12x", "١x"}, []string{"x"}},
		{`start: /[\S\n]+\x41\u{e9}\w\W[^\w]/`, []string{"a\nAéx  "}, []string{"a Aéx  ", "Aéx  "}},
		{`start: /./ "x"`, []string{"éx", "\rx"}, []string{"\nx"}},
		{`start: /^a$/ /[]"&]/`, []string{"a]", `a"`}, []string{"ab"}},
		{`start: /a+?/ "b"`, []string{"ab", "aab"}, []string{"b"}},
		{`start: "a\n\t\"\/\\\u00e9\x41"`, []string{"a\n\t\"/\\éA"}, nil},
		// Rules.
		{"start: e\ne: e \"+\" t | t\nt: /[0-9]+/", []string{"1+2+3"}, []string{"1+", "+"}},
		{"start: e\ne: f \"+\" t | t\nf: e\nt: /[0-9]+/", []string{"1+2+3"}, []string{"1+", "+"}},
		{"start: a | \"\"\na: \"x\" a?", []string{"", "x", "xx"}, []string{"y"}},
		{`start: [ "a" ] "b" |`, []string{"b", "ab", ""}, []string{"a"}},
		{"?start: \"a\" -> foo | \"b\" -> bar", []string{"a", "b"}, nil},
		{"start: \"a\" // c\n  # d\n  | (\"b\"\n | foo-c\n)\nfoo-c: \"c\"", []string{"a", "b", "c"}, []string{"d"}},
		{"start: _FOO (INT | x)\n_FOO: \"x\"\n%import common (INT, WS)\n%import common.CNAME -> NAME\nx: \"-\" NAME",
			[]string{"x1", "x-a_1"}, []string{"xa"}},
		{"start: TEXT | fun_call\nTEXT: /[^{](.|\\n)*/\nfun_call: %json {\n\"properties\": {\"name\": {\"const\": \"w\"}}, " +
			"\"required\": [\"name\"], \"additionalProperties\": false, \"type\": \"object\"}",
			[]string{"x{", `{"name": "w"}`}, []string{`{"name": "v"}`}},
		{"%llguidance {\"no_forcing\": true}\nstart: <[100]> \"a\"", []string{"da"}, []string{"ca"}},
		{`start: <[97-99,120]> "a" <[^97]>`, []string{"bab", "xax"}, []string{"dab", "baa"}},
	} {
		g, err := CompileLark(context.Background(), c.source, SchemaOptions{})
		if err != nil {
			t.Errorf("%s: %v", c.source, err)
			continue
		}
		checkTexts(t, c.source, c.yes, c.no, func(text string) bool { return accepts(t, g, v, text) })
	}
}

func TestLarkErrors(t *testing.T) {
	for _, c := range []struct {
		source string
		kind   error
		says   string
	}{
		{"", ErrInvalid, "no rule named start"},
		{`foo: "a"`, ErrInvalid, "no rule named start"},
		{`start: x`, ErrInvalid, "line 1: x is not defined"},
		{"start: X\nX: y\ny: \"a\"", ErrInvalid, "line 2: the rule y stands in a terminal"},
		{"start: X\nX: \"x\" X?", ErrInvalid, "line 2: the terminal X contains itself"},
		{"start: \"a\"\nstart: \"b\"", ErrInvalid, "line 2: start is defined twice"},
		{"start:\n  \"a\"", ErrInvalid, "line 2: expected the name of a rule"},
		{`start: "a`, ErrInvalid, "no closing"},
		{`start: ("a"`, ErrInvalid, "expected )"},
		{`start: "\q"`, ErrInvalid, `\q`},
		{`start: "c".."a"`, ErrInvalid, "range"},
		{`start: "a"{3,2}`, ErrInvalid, "repetition"},
		{`start: "a"~99999999`, ErrLimit, "99999999"},
		{`start: /a(?=b)/`, ErrUnsupported, "(?="},
		{`start: /\bq/`, ErrUnsupported, `\b`},
		{`start: /[a-z&&[^b]]/`, ErrUnsupported, "set operations"},
		{`start: /a b/x`, ErrUnsupported, "flag x"},
		{`start: /a{9999}/`, ErrLimit, "9999"},
		{`start.2: "a"`, ErrUnsupported, "the priority of start"},
		{"start: a{\",\"}\na{sep}: \"x\"", ErrUnsupported, "a template"},
		{"a{sep}: \"x\"", ErrUnsupported, "the template a"},
		{"start: a::0\na::_: \"x\"", ErrUnsupported, "the parameter of a"},
		{`start: @other`, ErrUnsupported, "the reference @other"},
		{`start: %lark { start: "a" }`, ErrUnsupported, "%lark"},
		{"%declare X\nstart: X", ErrUnsupported, "%declare"},
		{"%import python.NAME\nstart: NAME", ErrUnsupported, "imports from python"},
		{"%import common.FOO\nstart: FOO", ErrUnsupported, "common.FOO"},
		{`start[stop="x"]: /a*/`, ErrUnsupported, "use suffix"},
		{`start[max_tokens=3]: /a*/`, ErrUnsupported, "max_tokens"},
		{`start[temperature=0.5]: /a*/`, ErrUnsupported, "temperature"},
		{`%llguidance {"ignore_once": true}`, ErrUnsupported, "ignore_once"},
		{"start: A & B\nA: /a/\nB: /b/", ErrUnsupported, "upper case"},
		{"start: A\nA: <think>", ErrUnsupported, "line 2: a token or %json in a terminal"},
		{"start: %regex {\"type\": \"number\"}", ErrUnsupported, "%regex"},
		{"start: e\ne: f \"+\" t | t\nf: \"a\"? e\nt: \"1\"", ErrUnsupported, "left-recursive (start -> e -> f -> e)"},
		{`start: %json {"type": 3}`, ErrInvalid, "line 1: after %json"},
		{"start: " + strings.Repeat("(", 300) + `"a"` + strings.Repeat(")", 300), ErrLimit, "levels"},
		{"start: A\nA: /(a|b)*a(a|b){18}/", ErrLimit, "states"},
		{"start: \"\xff\"", ErrInvalid, "UTF-8"},
	} {
		_, err := CompileLark(context.Background(), c.source, SchemaOptions{})
		if err == nil || !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%.60q: got %v, want %v with %q", c.source, err, c.kind, c.says)
		}
	}
}

// With lexemes too, a token is in the mask exactly if Accept takes it.
func TestLarkMasks(t *testing.T) {
	v := smallVocabulary()
	for _, source := range []string{toolCalls, "start: e\ne: e \"+\" t | t\nt: NAME | \"(\" e \")\" | \"id\" NAME\n" +
		"NAME: /[a-z]+/\n%ignore /[ \\n]+/", `start: A (", " A)*
A: /[a-z]{1,20}/ | ESCAPED_STRING
%import common.ESCAPED_STRING`} {
		g, err := CompileLark(context.Background(), source, SchemaOptions{})
		if err != nil {
			t.Fatal(err)
		}
		walkMasks(t, g, v, 8, 30, false)
	}
}
