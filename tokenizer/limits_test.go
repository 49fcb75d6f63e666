package tokenizer

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/tokenizer/jsonfile"
	"github.com/ingotml/ingot/tokenizer/pattern"
)

// At each limit of a tokenizer's file reading succeeds; beyond it fails.
func TestTokenizerLimits(t *testing.T) {
	rep := strings.Repeat
	value := func(text string) error {
		r, err := jsonfile.NewReader("tokenizer.json", []byte(text))
		if err == nil {
			_, err = r.Value()
		}
		return err
	}
	loaded := func(text string) error {
		_, err := Load([]byte(text), nil)
		return err
	}
	compiled := func(text string) error {
		_, err := pattern.Translate(text)
		return err
	}
	one, err := pattern.Translate(`\p{L}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, want string
		at         int
		read       func(string) error
		make       func(n int) string
	}{
		{"nesting", "nested more", limits.TokenizerNesting, value, func(n int) string { return rep("[", n) + rep("]", n) }},
		{"values", "values", limits.TokenizerValues - 1, value, func(n int) string { return "[" + rep("0,", n-1) + "0]" }},
		{"groups", "nested more", limits.TokenizerPatternNesting - 1, compiled, func(n int) string {
			return rep("(", n) + "a" + rep(")", n)
		}},
		{"token", "token 7 has 2049 bytes; at most 2048", limits.TokenBytes, loaded, func(n int) string {
			return tokenizerOf(words(rep("x", n), 7), nil)
		}},
		{"merged token", "token 7 has 2049 bytes", limits.TokenBytes, loaded, func(n int) string {
			return tokenizerOf(`{"type":"BPE","vocab":{"a":0,"`+rep("x", n)+`":7},"merges":[]}`, nil)
		}},
		{"scored token", "token 1 has 2049 bytes", limits.TokenBytes, loaded, func(n int) string {
			return tokenizerOf(`{"type":"Unigram","unk_id":0,"vocab":[["a",0],["`+rep("x", n)+`",0]]}`, nil)
		}},
		{"piece", "token 3 has 2049 bytes", limits.TokenBytes, func(text string) error {
			_, err := LoadSentencePiece(modelOf(text), nil)
			return err
		}, func(n int) string { return rep("x", n) }},
		{"added token", "token 1 has 2049 bytes", limits.TokenBytes, loaded, func(n int) string {
			return tokenizerOf(words("a", 0), map[string]string{"added_tokens": "[" + added(rep("x", n)) + "]"})
		}},
		{"normalized token", "token 1 has 2049 bytes", limits.TokenBytes, loaded, func(n int) string {
			return tokenizerOf(words("a", 0), map[string]string{"added_tokens": "[" +
				strings.Replace(added("y"+rep("x", n-1024)), `"normalized":false`, `"normalized":true`, 1) + "]",
				"normalizer": `{"type":"Replace","pattern":{"String":"y"},"content":"` + rep("z", 1024) + `"}`})
		}},
		{"option", "2049 bytes", limits.TokenBytes, loaded, func(n int) string {
			return tokenizerOf(words("a", 0), map[string]string{
				"normalizer": `{"type":"Prepend","prepend":"` + rep("x", n) + `"}`})
		}},
		{"affix", "65 bytes", limits.TokenAffix, loaded, func(n int) string {
			return tokenizerOf(`{"type":"BPE","end_of_word_suffix":"`+rep("x", n)+`","vocab":{"a":0},"merges":[]}`, nil)
		}},
		{"steps", "steps", limits.TokenizerSteps, loaded, func(n int) string {
			return tokenizerOf(words("a", 0), map[string]string{
				"normalizer": sequence("normalizers", n/2, n-n/2, `{"type":"NFC"}`)})
		}},
		{"splits", "steps", limits.TokenizerSteps, loaded, func(n int) string {
			return tokenizerOf(words("a", 0), map[string]string{
				"pre_tokenizer": sequence("pretokenizers", n/2, n-n/2, `{"type":"WhitespaceSplit"}`)})
		}},
		{"decoders", "steps", limits.TokenizerSteps, loaded, func(n int) string {
			return tokenizerOf(words("a", 0), map[string]string{"decoder": sequence("decoders", n/2, n-n/2, `{"type":"Fuse"}`)})
		}},
		{"growth", "times as long", limits.DecodedTimes, loaded, func(n int) string {
			return tokenizerOf(words("a", 0), map[string]string{
				"decoder": `{"type":"Replace","pattern":{"String":"a"},"content":"` + rep("b", n) + `"}`})
		}},
		{"special tokens", "pieces in single", limits.TokenizerSpecial, loaded, func(n int) string {
			return tokenizerOf(words("a", 0), map[string]string{"post_processor": `{"type":"TemplateProcessing","single":[` +
				strings.TrimSuffix(rep(`{"SpecialToken":{"id":"a","type_id":0}},`, n), ",") +
				`],"special_tokens":{"a":{"id":"a","ids":[0],"tokens":["a"]}}}`})
		}},
		{"ids", "special tokens in single", limits.TokenizerSpecial, loaded, func(n int) string {
			return tokenizerOf(words("a", 0), map[string]string{"post_processor": `{"type":"TemplateProcessing","single":[` +
				`{"SpecialToken":{"id":"a","type_id":0}}],"special_tokens":{"a":{"id":"a","tokens":["a"],"ids":[` +
				strings.TrimSuffix(rep("0,", n), ",") + `]}}}`})
		}},
		{"size", "classes", limits.TokenizerPattern / len(one), compiled, func(n int) string { return rep(`\p{L}`, n) }},
	} {
		if err := c.read(c.make(c.at)); err != nil {
			t.Errorf("%s: %d: %v", c.name, c.at, err)
		}
		over := c.at + 1
		if c.name == "size" {
			over++ // the size is only checked before the next part
		}
		if err := c.read(c.make(over)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %d: got %v, want %q", c.name, over, err, c.want)
		}
	}
}

// tokenizerOf returns a tokenizer.json of a model and other parts.
func tokenizerOf(model string, parts map[string]string) string {
	text := `{"version":"1.0"`
	for name, part := range parts {
		text += `,"` + name + `":` + part
	}
	return text + `,"model":` + model + "}"
}

// words returns a model whose vocabulary is a word.
func words(word string, id int) string {
	return fmt.Sprintf(`{"type":"WordLevel","vocab":{%q:%d},"unk_token":%q}`, word, id, word)
}

func added(content string) string {
	return fmt.Sprintf(`{"id":1,"content":%q,"single_word":false,"lstrip":false,"rstrip":false,"normalized":false,`+
		`"special":false}`, content)
}

// sequence returns a component of n and more copies of a part, the latter in a sequence of their own.
func sequence(key string, n, more int, part string) string {
	list := func(n int) string { return strings.TrimSuffix(strings.Repeat(part+",", n), ",") }
	return fmt.Sprintf(`{"type":"Sequence","%[1]s":[%[2]s,{"type":"Sequence","%[1]s":[%[3]s]}]}`, key, list(n), list(more))
}

// modelOf returns a tokenizer.model whose last piece has a text.
func modelOf(text string) (model []byte) {
	for i, s := range []string{"<unk>", "<s>", "</s>", text} {
		piece := append(binary.AppendUvarint([]byte{1<<3 | 2}, uint64(len(s))), s...)
		if i == 0 {
			piece = append(piece, 3<<3, 2) // unknown
		}
		model = append(binary.AppendUvarint(append(model, 1<<3|2), uint64(len(piece))), piece...)
	}
	return model
}
