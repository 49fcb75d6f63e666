package tokenizer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits"
)

// hostileTokenizers are tokenizers that make of a text of n bytes as much work as they can.
func hostileTokenizers(t testing.TB) map[string]*Tokenizer {
	rep := strings.Repeat
	load := func(model string, parts map[string]string) *Tokenizer {
		t.Helper()
		tok, err := Load([]byte(tokenizerOf(model, parts)), nil)
		if err != nil {
			t.Fatal(err)
		}
		return tok
	}
	long := rep("a", limits.TokenBytes-1)
	var scored, listed []string
	for i := 1; i < limits.TokenBytes; i++ {
		scored = append(scored, fmt.Sprintf(`["%s",-%d]`, rep("a", i), i))
		listed = append(listed, fmt.Sprintf(`"%s":%d`, rep("a", i), i))
	}
	part := func(name, text string) map[string]string { return map[string]string{name: text} }
	const bpe = `{"type":"BPE","vocab":{"a":0,"aa":1,"aaaa":2," ":3," a":4},"merges":["a a","aa aa"]}`
	all := map[string]*Tokenizer{
		"added":   load(bpe, part("added_tokens", "["+added(long+"b")+","+strings.Replace(added("a"), `:1`, `:2`, 1)+"]")),
		"rstrip":  load(bpe, part("added_tokens", "["+strings.Replace(added(" "), `"rstrip":false`, `"rstrip":true`, 1)+"]")),
		"bpe":     load(bpe, nil),
		"unigram": load(`{"type":"Unigram","unk_id":0,"vocab":[["?",-9],`+strings.Join(scored, ",")+`]}`, nil),
		"wordpiece": load(`{"type":"WordPiece","unk_token":"a","continuing_subword_prefix":"",`+
			`"max_input_chars_per_word":9999999,"vocab":{"a":1,"`+long+`b":2}}`, nil),
		"words":       load(`{"type":"WordLevel","unk_token":"a","vocab":{`+strings.Join(listed, ",")+`}}`, nil),
		"normalizers": load(bpe, part("normalizer", sequence("normalizers", 30, 30, `{"type":"NFKC"}`))),
		"bert": load(bpe, part("normalizer", sequence("normalizers", 5, 5, `{"type":"BertNormalizer","clean_text":true,`+
			`"handle_chinese_chars":true,"strip_accents":true,"lowercase":true}`))),
		"growing": load(bpe, part("normalizer", sequence("normalizers", 30, 30,
			`{"type":"Replace","pattern":{"String":"a"},"content":"aa"}`))),
		"prepended": load(bpe, map[string]string{"added_tokens": "[" + strings.Replace(added(" "), `:1`, `:3`, 1) + "]",
			"normalizer": `{"type":"Prepend","prepend":"` + long + `"}`}),
		"splits": load(bpe, part("pre_tokenizer", sequence("pretokenizers", 30, 30,
			`{"type":"Split","pattern":{"String":"a"},"behavior":"MergedWithNext","invert":false}`))),
		"doubling": load(bpe, part("pre_tokenizer", sequence("pretokenizers", 30, 30,
			`{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":false,"use_regex":false}`))),
		"marks": load(bpe, part("pre_tokenizer", sequence("pretokenizers", 30, 30,
			`{"type":"Metaspace","replacement":"😀","prepend_scheme":"always","split":true}`))),
		"spaces": load(bpe, part("pre_tokenizer",
			`{"type":"Split","pattern":{"Regex":"\\s{1024}(?!\\S)|\\s{1}"},"behavior":"Isolated","invert":false}`)),
		"backtracking": load(bpe, part("pre_tokenizer",
			`{"type":"Split","pattern":{"Regex":"(?:a|aa)+b"},"behavior":"Isolated","invert":false}`)),
	}
	for name, tok := range all {
		if tok == nil {
			t.Fatal(name)
		}
	}
	return all
}

// hostileTexts are texts of about n bytes.
func hostileTexts(n int) map[string]string {
	texts := map[string]string{}
	units := []string{"a", "b", " ", "a ", "ab", "é", "\u0301", "\ufdfa", "\u3000", "日", "\n", "1", spacesOfWord}
	for _, unit := range units {
		texts[unit] = strings.Repeat(unit, n/len(unit))
	}
	return texts
}

// spacesOfWord is less white space than a part of a pattern looks for.
var spacesOfWord = strings.Repeat("\u3000", 1023) + "a"

// What a text becomes and the work that it takes are bounded by its length.
func TestEncodeLimits(t *testing.T) {
	all := hostileTokenizers(t)
	for _, c := range []struct {
		tok  string
		text string
		want string
	}{
		{"growing", "a", "expands a text of 1 bytes"},
		{"prepended", strings.Repeat("a ", 1000), "expands"},
		{"doubling", "é", "expands"},
		{"backtracking", strings.Repeat("a", 60), "more than"},
	} {
		_, err := all[c.tok].Encode(t.Context(), c.text, false)
		if !errors.Is(err, ErrTimeout) && !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.tok, err, c.want)
		}
	}
}

// A client that leaves ends the tokenization of its text, wherever that is.
func TestEncodeEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tok := range hostileTokenizers(t) {
		for unit, text := range hostileTexts(200_000) {
			if _, err := tok.Encode(ctx, text, false); !errors.Is(err, context.Canceled) && !errors.Is(err, ErrInvalid) {
				t.Errorf("%s of %.20q: got %v", name, unit, err)
			}
		}
	}
}
