package runtime

import (
	"errors"
	"testing"
)

func TestParseFormat(t *testing.T) {
	for source, want := range map[string]Format{
		``: {}, `null`: {}, `""`: {}, ` "json" `: {Kind: FormatJSON},
		` {"type": "object"}`:        {Kind: FormatSchema, Source: `{"type": "object"}`},
		`"regex:a:\"b+"`:             {Kind: FormatRegex, Source: `a:"b+`},
		`"lark:start: /a/"`:          {Kind: FormatLark, Source: "start: /a/"},
		`{"type": "structural_tag"}`: {Kind: FormatTags, Source: `{"type": "structural_tag"}`},
		`"ebnf:root ::= [a-z]"`: {Kind: FormatEBNF,
			Source: `root ::= [a-z]`},
	} {
		got, err := ParseFormat([]byte(source))
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", source, got, err)
		}
		if again, err := ParseFormat(got.Value()); err != nil || again != want {
			t.Errorf("%s becomes %s, which is %+v, %v", source, got.Value(), again, err)
		}
	}
	for _, source := range []string{`"yaml"`, `7`, `[]`, `"json`, `"json:"`, `"regex"`, `"schema:{}"`} {
		if got, err := ParseFormat([]byte(source)); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %+v, %v", source, got, err)
		}
	}
}
