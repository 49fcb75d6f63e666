package pyjson

import (
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits"
)

func TestBound(t *testing.T) {
	many := func(n int, of string) string { return strings.TrimSuffix(strings.Repeat(of+",", n), ",") }
	lists := "[" + many(limits.JSONElements, "0") + "]"
	for _, c := range []struct {
		name, file, text string
		ok               bool
	}{
		{"small", "config.json", `{"a": [1, 2], "b": "x,y,[{\",,\""}`, true},
		{"no JSON", "config.json", `]]},,,"\`, true},
		{"deep", "config.json", strings.Repeat("[", 1<<20), true},
		{"a list within", "config.json", lists, true},
		{"a list beyond", "config.json", "[" + many(limits.JSONElements+1, "0") + "]", false},
		{"an object beyond", "generation_config.json", `{"t":{` + many(limits.JSONElements+1, `"a":0`) + "}}", false},
		{"commas in a text", "config.json", `{"t":"` + strings.Repeat(",", limits.JSONValues+1) + `"}`, true},
		{"many lists", "config.json", "[" + many(limits.JSONValues/limits.JSONElements, lists) + "]", false},
		{"a vocabulary", "tokenizer.json", "[" + many(limits.JSONElements+1, "0") + "]", true},
		{"no configuration", "merges.txt", strings.Repeat(",", limits.JSONValues+1), true},
		{"bytes", "1_Pooling/config.json", strings.Repeat(" ", limits.ModelJSON+1), false},
		{"bytes of a vocabulary", "tokenizer.json", strings.Repeat(" ", limits.ModelJSON+1), true},
	} {
		if err := Bound(c.file, []byte(c.text)); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if MostBytes("config.json") != limits.ModelJSON || MostBytes("tokenizer.model") != limits.ModelFile {
		t.Error("the sizes of files are others")
	}
}
