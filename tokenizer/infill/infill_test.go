package infill

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/tokenizer"
	"github.com/ingotml/ingot/tokenizer/tokenizertest"
)

// golden is what testdata/gen/tokenizers/infill.py writes for a family.
type golden struct {
	Base    string          `json:"base"`
	Added   json.RawMessage `json:"added_tokens"`
	Post    json.RawMessage `json:"post_processor"`
	Ends    []int32         `json:"ends"`
	Prompts []struct {
		Prefix string  `json:"prefix"`
		Suffix string  `json:"suffix"`
		IDs    []int32 `json:"ids"`
	} `json:"prompts"`
}

// load returns the tokenizer of a folder of the repository with some of its parts replaced.
func load(t *testing.T, base string, parts map[string]json.RawMessage, config string) *tokenizer.Tokenizer {
	t.Helper()
	var file map[string]json.RawMessage
	tokenizertest.ReadJSON(t, filepath.Join("..", "..", "..", base, "tokenizer.json"), &file)
	for key, part := range parts {
		file[key] = part
	}
	b, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Load(b, []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// The prompts are those of the families' references, and so are the tokens that end the text.
func TestFamilies(t *testing.T) {
	var all map[string]golden
	tokenizertest.ReadJSON(t, "golden.json", &all)
	if len(all) < len(families) {
		t.Errorf("%d families have goldens, of %d", len(all), len(families))
	}
	for name, g := range all {
		f := Of(load(t, g.Base, map[string]json.RawMessage{"added_tokens": g.Added, "post_processor": g.Post}, "{}"))
		if f == nil {
			t.Errorf("%s: the tokens are not found", name)
			continue
		}
		for _, p := range g.Prompts {
			if ids, err := f.Encode(t.Context(), p.Prefix, p.Suffix, len(p.IDs)); err != nil || !slices.Equal(ids, p.IDs) {
				t.Errorf("%s: %q and %q: %v, %v, want %v", name, p.Prefix, p.Suffix, ids, err, p.IDs)
			}
			if ids, err := f.Encode(t.Context(), p.Prefix, p.Suffix, len(p.IDs)-1); err != nil || len(ids) != len(p.IDs)-1 {
				t.Errorf("%s: %q and %q in one token less: %v, %v", name, p.Prefix, p.Suffix, ids, err)
			}
		}
		ends := slices.Sorted(slices.Values(f.Ends()))
		if !slices.Equal(slices.Compact(ends), g.Ends) {
			t.Errorf("%s: ends %v, want %v", name, ends, g.Ends)
		}
	}
}

// A text before the gap may be token ids, with or without what the tokenizer adds.
func TestEncodeAfter(t *testing.T) {
	var tokens []string
	for _, name := range []string{"<s>", "</s>", "[PREFIX]", "[SUFFIX]"} {
		tokens = append(tokens, `{"id":0,"content":"`+name+`","single_word":false,"lstrip":false,"rstrip":false,`+
			`"normalized":false,"special":true}`)
	}
	added := json.RawMessage("[" + strings.Join(tokens, ",") + "]")
	both := json.RawMessage(`{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},` +
		`{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}}],"pair":[],"special_tokens":` +
		`{"<s>":{"id":"<s>","ids":[1],"tokens":["<s>"]},"</s>":{"id":"</s>","ids":[2],"tokens":["</s>"]}}}`)
	f := Of(load(t, "testdata/tokenizers/llama2", map[string]json.RawMessage{"added_tokens": added,
		"post_processor": both}, `{"bos_token":"<s>","eos_token":"</s>"}`))
	want, err := f.Encode(t.Context(), "the cat", "", math.MaxInt)
	if err != nil || want[0] != 1 || slices.Contains(want, 2) {
		t.Fatalf("%v, %v", want, err)
	}
	prefix := want[slices.Index(want, 900)+1:]
	for _, ids := range [][]int32{prefix, slices.Concat([]int32{1}, prefix)} {
		if got, err := f.EncodeAfter(t.Context(), ids, "", math.MaxInt); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v: %v, %v, want %v", ids, got, err, want)
		}
	}
}

// What does not fit loses what is farthest from the gap.
func TestShorten(t *testing.T) {
	count := func(from, n int) (ids []int32) {
		for i := range n {
			ids = append(ids, int32(from+i))
		}
		return ids
	}
	for _, c := range []struct{ before, after, most, left, right int }{
		{10, 10, 20, 10, 10}, {10, 10, 12, 9, 3}, {2, 10, 8, 2, 6}, {10, 1, 8, 7, 1}, {0, 10, 4, 0, 4}, {10, 0, 4, 4, 0},
		{10, 10, 0, 0, 0}, {1, 1, 1, 1, 0},
	} {
		left, right := shorten(count(0, c.before), count(100, c.after), c.most)
		if !slices.Equal(left, count(c.before-c.left, c.left)) || !slices.Equal(right, count(100, c.right)) {
			t.Errorf("%+v: %v and %v", c, left, right)
		}
	}
}

// A vocabulary with some of a family's tokens has no format.
func TestNone(t *testing.T) {
	model, err := os.ReadFile(filepath.Join("..", "testdata", "starcoder", "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Load(model, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := tok.ID("<fim_prefix>"); !ok {
		t.Error("the fixture has lost its token")
	}
	if Of(tok) != nil || Of(nil) != nil {
		t.Error("a format is found")
	}
}
