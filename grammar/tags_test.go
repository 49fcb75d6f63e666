package grammar

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// structural returns the source of a structural tag.
func structural(format string) string { return `{"type": "structural_tag", "format": ` + format + `}` }

const functions = `"tags": [{"begin": "<function=f>", "content": {"type": "json_schema", "json_schema": {"type": ` +
	`"integer"}}, "end": "</function>"}, {"type": "tag", "begin": "<function=g>", "content": {"type": "const_string", ` +
	`"value": "x"}, "end": "</function>"}], "triggers": ["<function="]`

// What XGrammar 0.2.8 accepts.
func TestTags(t *testing.T) {
	v := tokenVocabulary()
	for _, c := range []struct {
		source  string
		yes, no []string
	}{
		{`{"type": "structural_tag", "structures": [{"begin": "<function=f>", "schema": {"type": "integer"}, "end": ` +
			`"</function>"}], "triggers": ["<function="]}`,
			[]string{"", "hi", "a <function=f>12</function> b<func", "<function=f>1</function><function=f>2</function>"},
			[]string{"<function=", "<function=g>", "<function=f>x</function>", "<function=f>1"}},
		{structural(`{"type": "triggered_tags", ` + functions + `}`),
			[]string{"", "é", "a<function=g>x</function>b<function=f>-3</function>"}, []string{"<function=g>1"}},
		{structural(`{"type": "triggered_tags", "at_least_one": true, "excludes": ["no"], ` + functions + `}`),
			[]string{"<function=g>x</function>", "<function=g>x</function>b<function=f>3</function>n"},
			[]string{"", "a<function=g>x</function>", "<function=g>x</function>no", "<function=g>x</function>" +
				"no<function=g>x</function>"}},
		{structural(`{"type": "triggered_tags", "stop_after_first": true, ` + functions + `}`),
			[]string{"", "a", "a<function=g>x</function>"}, []string{"<function=g>x</function>b"}},
		{structural(`{"type": "triggered_tags", "stop_after_first": true, "at_least_one": true, ` + functions + `}`),
			[]string{"<function=g>x</function>"}, []string{"", "a<function=g>x</function>", "<function=g>x</function>b"}},
		{structural(`{"type": "tag", "begin": "<think>", "content": {"type": "any_text"}, "end": "</think>"}`),
			[]string{"<think></think>", "<think>a\n</</think>"}, []string{"<think>a", "<think></think></think>"}},
		{structural(`{"type": "tag", "begin": "<r>", "content": {"type": "any_text", "max_chars": 3, "excludes": ["b"]}, ` +
			`"end": ["</r>", "</a>"]}`), []string{"<r>éaa</r>", "<r></a>"}, []string{"<r>aaaa</r>", "<r>b</r>"}},
		{structural(`{"type": "sequence", "elements": [{"type": "tag", "begin": "<t>", "content": {"type": "any_text"}, ` +
			`"end": "</t>"}, {"type": "triggered_tags", ` + functions + `}]}`),
			[]string{"<t>a</t>", "<t><function=</t>b<function=f>1</function>"}, []string{"<t>a</t><function="}},
		{structural(`{"type": "or", "elements": [{"type": "regex", "pattern": "[A-Z]{2}"}, {"type": "grammar", "grammar": ` +
			`"root ::= \"x\"+"}, {"type": "const_string", "value": "é"}]}`), []string{"AB", "xx", "é"}, []string{"A", ""}},
		{structural(`{"type": "sequence", "elements": [{"type": "optional", "content": {"type": "const_string", "value": ` +
			`"o"}}, {"type": "plus", "content": {"type": "const_string", "value": "p"}}, {"type": "star", "content": ` +
			`{"type": "const_string", "value": "s"}}, {"type": "repeat", "min": 1, "max": 2, "content": {"type": ` +
			`"const_string", "value": "r"}}, {"type": "any_text", "max_chars": 1}]}`),
			[]string{"opr", "ppssrr!", "prré"}, []string{"r", "oopr", "pr!!", "prrr!"}},
		{structural(`{"type": "tags_with_separator", "separator": ",", "tags": [{"begin": "<", "content": {"type": ` +
			`"json_schema", "json_schema": {"type": "integer"}}, "end": ">"}]}`), []string{"", "<1>", "<1>,<2>"},
			[]string{",", "<1>,", "<1><2>", "a"}},
		{structural(`{"type": "tags_with_separator", "separator": ",", "at_least_one": true, "stop_after_first": true, ` +
			`"tags": [{"begin": "<", "content": {"type": "any_text"}, "end": ">"}]}`), []string{"<a>"}, []string{"", "<>,<>"}},
		{structural(`{"type": "dispatch", "rules": [["<a>", {"type": "const_string", "value": "1"}], ["<b>", {"type": ` +
			`"regex", "pattern": "[23]"}]], "excludes": ["!"]}`), []string{"", "x<a>1y<b>3<"}, []string{"<a>2", "!", "x<a>"}},
		{structural(`{"type": "dispatch", "loop": false, "rules": [["<a>", {"type": "const_string", "value": "1"}]]}`),
			[]string{"x", "x<a>1"}, []string{"x<a>1y", "<a>"}},
		// Tokens.
		{structural(`{"type": "sequence", "elements": [{"type": "tag", "begin": {"type": "token", "token": "<think>"}, ` +
			`"content": {"type": "any_tokens"}, "end": {"type": "token", "token": 257}}, {"type": "token", "token": 97}]}`),
			[]string{"{<think>}ab{<|call|>}{</think>}a", "{<think>}{</think>}a"},
			[]string{"{<think>}{</think>}", "<think>{</think>}a", "{<think>}{</think>}{</think>}a"}},
		{structural(`{"type": "token_triggered_tags", "trigger_tokens": ["<|call|>"], "exclude_tokens": [98, "<|end|>"], ` +
			`"tags": [{"begin": {"type": "token", "token": "<|call|>"}, "content": {"type": "any_tokens", "max_tokens": 2}, ` +
			`"end": "!"}]}`), []string{"", "a{<|call|>}bb!c", "{<think>}"}, []string{"{<|call|>}", "b", "{<|call|>}bbb!"}},
		{structural(`{"type": "token_dispatch", "rules": [["<|call|>", {"type": "exclude_token", "exclude_tokens": [98]}]]` +
			`, "loop": false}`), []string{"", "a", "a{<|call|>}c"}, []string{"{<|call|>}b", "{<|call|>}cc", "{<|call|>}"}},
	} {
		g, err := CompileTags(context.Background(), []byte(c.source), SchemaOptions{})
		if err != nil {
			t.Errorf("%s: %v", c.source, err)
			continue
		}
		checkTexts(t, c.source, c.yes, c.no, func(text string) bool { return acceptsTokens(t, g, v, ids(text)) })
		if len(c.yes) > 0 {
			walkMasks(t, g, v, 2, 15, true)
		}
	}
}

func TestTagErrors(t *testing.T) {
	deep := strings.Repeat(`{"type": "star", "content": `, 300) + `{"type": "any_text"}` + strings.Repeat("}", 300)
	for _, c := range []struct {
		source string
		kind   error
		says   string
	}{
		{`[]`, ErrInvalid, "want a JSON object"},
		{`{"type": "structural_tag"}`, ErrInvalid, "/format"},
		{structural(`{}`), ErrInvalid, "/format: type is missing"},
		{structural(`{"type": "qwen"}`), ErrUnsupported, "/format: the format qwen"},
		{structural(`{"type": "const_string", "value": "a", "more": 1}`), ErrUnsupported, "the field more"},
		{structural(`{"type": "const_string", "value": 3}`), ErrInvalid, "value: want string"},
		{structural(`{"type": "json_schema", "json_schema": {}, "style": "qwen_xml"}`), ErrUnsupported, "qwen_xml"},
		{structural(`{"type": "json_schema", "json_schema": {}, "any_order": true}`), ErrUnsupported, "any_order"},
		{structural(`{"type": "json_schema", "json_schema": {"type": 3}}`), ErrInvalid, "/format/json_schema"},
		{structural(`{"type": "any_text", "max_tokens": 3}`), ErrUnsupported, "max_tokens"},
		{structural(`{"type": "any_text", "excludes": [""]}`), ErrInvalid, "empty"},
		{structural(`{"type": "sequence", "elements": []}`), ErrInvalid, "elements is empty"},
		{structural(`{"type": "sequence", "elements": [{"type": "regex", "pattern": "("}]}`), ErrInvalid,
			"/format/elements/0"},
		{structural(`{"type": "grammar", "grammar": "root ::= x"}`), ErrInvalid, "rule x is not defined"},
		{structural(`{"type": "repeat", "min": 2, "max": 1, "content": {"type": "any_text"}}`), ErrInvalid, "min 2"},
		{structural(`{"type": "triggered_tags", "tags": [], "triggers": ["a"]}`), ErrInvalid, "tags is empty"},
		{structural(`{"type": "triggered_tags", "triggers": ["x"], ` + functions[:strings.Index(functions, `, "triggers"`)] +
			`}`), ErrInvalid, "/format/tags/0: no trigger begins the tag"},
		{structural(`{"type": "triggered_tags", "triggers": ["<", "<f"], ` +
			functions[:strings.Index(functions, `, "triggers"`)] + `}`), ErrInvalid, "both begin the tag"},
		{structural(`{"type": "dispatch", "rules": [["a"]]}`), ErrInvalid, "rule 0"},
		{structural(`{"type": "token", "token": -1}`), ErrInvalid, "-1"},
		{structural(deep), ErrLimit, "levels"},
		{structural(`{"type": "any_text", "excludes": ["` + strings.Repeat("a", 20000) + `"]}`), ErrLimit, "states"},
	} {
		_, err := CompileTags(context.Background(), []byte(c.source), SchemaOptions{})
		if err == nil || !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%.100s: got %v, want %v with %q", c.source, err, c.kind, c.says)
		}
	}
}
