package notation

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
)

// whole reports whether text is objects and lists of JSON.
func whole(text string) bool {
	d := json.NewDecoder(strings.NewReader(text))
	for {
		var v json.RawMessage
		switch err := d.Decode(&v); {
		case errors.Is(err, io.EOF):
			return true
		case err != nil || v[0] != '{' && v[0] != '[':
			return false
		}
	}
}

// Prefix accepts exactly the beginnings of objects and lists, and knows their ends.
func TestPrefix(t *testing.T) {
	const letters, longest = `{}[]":,1`, 6
	begins := map[string]bool{} // beginnings of whole texts
	texts := []string{""}
	for i := 0; i < len(texts); i++ {
		text := texts[i]
		if whole(text) {
			for n := range len(text) + 1 {
				begins[text[:n]] = true
			}
		}
		if len(text) < longest {
			for _, b := range letters {
				texts = append(texts, text+string(b))
			}
		}
	}
	accepts := func(text string) (ok, top bool) {
		var p Prefix
		for i := range len(text) {
			if !p.Add(text[i]) {
				return false, false
			}
		}
		return true, p.Top()
	}
	for _, text := range texts {
		ok, top := accepts(text)
		if begins[text] && !ok || len(text) <= 2 && ok && !begins[text] || whole(text) != (ok && top) {
			t.Errorf("%q: accepted %v, complete %v", text, ok, top)
		}
	}
	for text, want := range map[string]bool{
		"{\"a\": \"two\nlines\"}": true, `[{"a": [1, -2.5e3, true, null]}] {"b": {}}`: true,
		`{"a": 1,}`: false, `[1 2]`: false,
		`{a: 1}`: false, `{"a" "b"}`: false, `[}`: false, `{"a": "\"}`: true, `{}}`: false, `1`: false,
	} {
		if ok, _ := accepts(text); ok != want {
			t.Errorf("%q: accepted %v", text, ok)
		}
	}
}

func TestPython(t *testing.T) {
	for _, c := range []struct{ in, want, rest string }{
		{`{'a': [True, (1, "x")]} rest`, `{"a":[true,[1,"x"]]}`, " rest"},
		{`'it\'s', b`, `"it's"`, ", b"},
		{`None`, `null`, ""},
		{`[1, 2`, ``, ""}, {`'open`, ``, ""}, {`{1: 2}`, ``, ""}, {``, ``, ""},
		{strings.Repeat("[True,", maxLiteral) + "1" + strings.Repeat("]", maxLiteral),
			strings.Repeat("[true,", maxLiteral) + "1" + strings.Repeat("]", maxLiteral), ""},
		{strings.Repeat("[True,", maxLiteral+2) + "None" + strings.Repeat("]", maxLiteral+2), ``, ""},
	} {
		v, rest, err := Python(c.in)
		if string(v) != c.want || err == nil != (c.want != "") || err == nil && rest != c.rest {
			t.Errorf("%.40q: %.40s, rest %q, %v", c.in, v, rest, err)
		}
	}
}

func TestGemma(t *testing.T) {
	deep := func(n int) string { return "{a:" + strings.Repeat("[", n) + strings.Repeat("]", n) + "}" }
	for _, c := range []struct{ in, want string }{
		{`{a:<|"|>x<|"|>,b:{c:[1,true,]},"d": 'e'}`, `{"a":"x","b":{"c":[1,true]},"d":"'e'"}`},
		{`{n:7`, `{"n":7}`},
		{`{a:1} b`, ``}, {`{a 1}`, ``}, {`{a:1 b:2}`, `{"a":"1 b:2"}`},
		{deep(maxDepth), strings.Replace(deep(maxDepth), "a", `"a"`, 1)}, {deep(maxDepth + 1), ``},
	} {
		v, err := Gemma(c.in, map[string][]string{"n": {"string"}})
		if string(v) != c.want || err == nil != (c.want != "") {
			t.Errorf("%.60q: %.60s, %v", c.in, v, err)
		}
	}
}
