package vocab_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/convert/gguf"
	"github.com/ingotml/ingot/convert/gguf/vocab"
)

func TestTemplatesOfKeys(t *testing.T) {
	for name, c := range map[string]struct {
		pairs []gguf.Pair
		want  string // name=text, in order
	}{
		"none":  {nil, ""},
		"one":   {[]gguf.Pair{text("chat_template", "d")}, "default=d"},
		"named": {[]gguf.Pair{text("chat_template.rag", "r"), text("chat_template", "d")}, "default=d rag=r"},
		"no default": {[]gguf.Pair{text("chat_template.rag", "r"), text("chat_template.tool_use", "t")},
			"rag=r tool_use=t"},
		"two defaults":  {[]gguf.Pair{text("chat_template.default", "x"), text("chat_template", "d")}, "default=d"},
		"named default": {[]gguf.Pair{text("chat_template.default", "x"), text("chat_template.rag", "r")}, "default=x rag=r"},
		"with the list": {[]gguf.Pair{text("chat_template", "d"), text("chat_template.tool_use", "t"),
			{Key: "tokenizer.chat_templates", Value: gguf.Texts([]string{"tool_use", "absent"})}}, "default=d tool_use=t"},
		"empty": {[]gguf.Pair{text("chat_template", ""), text("chat_template.rag", "r")}, "rag=r"},
	} {
		files, err := vocab.Files(metadata(t, append(small(), c.pairs...)...))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		config := file(t, files, "tokenizer_config.json")
		templates := chat.ReadTemplates([]chat.File{{Name: "tokenizer_config.json", Data: config}}, "")
		var got []string
		for _, n := range templates.All() {
			got = append(got, n.Name+"="+n.Text)
		}
		if strings.Join(got, " ") != c.want || templates.Err() != nil {
			t.Errorf("%s: %q, %v, want %s", name, got, templates.Err(), c.want)
		}
	}
	for _, key := range []string{"tokenizer.chat_template", "tokenizer.chat_template.tool_use"} {
		pairs := append(small(), gguf.Pair{Key: key, Value: gguf.Number(5)})
		if _, err := vocab.Files(metadata(t, pairs...)); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s is a number: %v", key, err)
		}
	}
}

// Names are written as the Python package gguf writes them, and none takes the place of another template.
func TestKeysOfTemplates(t *testing.T) {
	n := func(name string) chat.Named { return chat.Named{Name: name, Text: "{" + name + "}"} }
	for want, list := range map[string][]chat.Named{
		"":                        nil,
		"chat_template={default}": {n("default")},
		"chat_template={default} chat_template.tool_use={tool_use} chat_template.rag={rag} chat_templates=tool_use,rag": {
			n("default"), n("tool_use"), n("rag")},
		"chat_template.tool_use={tool_use} chat_template={default} chat_templates=tool_use": {n("tool_use"), n("default")},
		"chat_template.a_b={a b} chat_template.__={é✓} chat_templates=a_b,__":               {n("a b"), n("é✓")},
		"chat_template.a_b={a_b} chat_templates=a_b": {
			n("a b"), n("a_b"), n("a-b"), n("tool use")},
	} {
		s := vocab.Source{Tokenizer: []byte(smallTokenizer), Templates: list}
		pairs, err := vocab.Metadata(s)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range pairs {
			if key, ok := strings.CutPrefix(p.Key, "tokenizer.chat_"); ok {
				got = append(got, "chat_"+key+"="+strings.Join(p.Value.Strings(), ","))
			}
		}
		if d := cmp.Diff(want, strings.Join(got, " ")); d != "" {
			t.Error(d)
		}
		if lost := s.Unwritten(); (len(lost) > 0) != (len(list) == 4) || len(lost) > 0 &&
			!slices.Equal(lost, []string{"a b", "a-b", "tool use"}) {
			t.Errorf("%v: lost %q", list, lost)
		}
	}
}

const smallTokenizer = `{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []},
	"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}, "normalizer": null}`
