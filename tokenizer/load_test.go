package tokenizer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ingotml/ingot/tokenizer/tokenizertest"
)

// file returns a small valid tokenizer.json with some parts replaced.
func file(parts ...string) string {
	all := map[string]string{
		"model":         `{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":[["a","b"]]}`,
		"added_tokens":  `[]`,
		"normalizer":    `null`,
		"pre_tokenizer": `null`, "post_processor": `null`, "decoder": `null`,
	}
	for i := 0; i < len(parts); i += 2 {
		all[parts[i]] = parts[i+1]
	}
	out := `{"version":"1.0","truncation":null,"padding":null`
	for _, key := range []string{"added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder", "model"} {
		out += fmt.Sprintf(",%q:%s", key, all[key])
	}
	return out + "}"
}

func TestLoadErrors(t *testing.T) {
	bpe := func(vocab, merges, more string) string {
		return file("model", fmt.Sprintf(`{"type":"BPE","vocab":%s,"merges":%s%s}`, vocab, merges, more))
	}
	const added = `"single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":false}`
	for _, c := range []struct {
		file string
		kind error
		want string
	}{
		// Unsupported components are named.
		{file("pre_tokenizer", `{"type":"Other"}`), ErrUnsupported, `tokenizer.json: pre_tokenizer "Other" is not supported`},
		{file("pre_tokenizer", `{"type":"Sequence","pretokenizers":[{"type":"Whitespaces"}]}`), ErrUnsupported,
			`tokenizer.json: pre_tokenizer "Whitespaces" is not supported`},
		{file("normalizer", `{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Uppercase"}]}`), ErrUnsupported,
			`normalizer "Uppercase" is not supported`},
		{file("post_processor", `{"type":"Other"}`), ErrUnsupported,
			`tokenizer.json: post_processor "Other" is not supported`},
		{file("decoder", `{"type":"Other"}`), ErrUnsupported, `tokenizer.json: decoder "Other" is not supported`},
		{file("decoder", `{"type":"Sequence","decoders":[{"type":"Fuse"},{"type":"Other"}]}`), ErrUnsupported,
			`decoder "Other" is not supported`},
		{file("model", `{"type":"Other","vocab":{}}`), ErrUnsupported, `tokenizer.json: model "Other" is not supported`},
		{bpe(`{"a":0}`, `[]`, `,"dropout":0.1`), ErrUnsupported, `tokenizer.json: model "BPE" with dropout is not supported`},
		{file("pre_tokenizer", `{"type":"Split","pattern":{"Regex":"\\Gx"},"behavior":"Isolated","invert":false}`),
			ErrUnsupported, `pre_tokenizer "Split" with the pattern "\\Gx" is not supported: escape \G`},
		{file("pre_tokenizer", `{"type":"Split","pattern":{"Regex":"x"},"behavior":"Doubled","invert":false}`),
			ErrUnsupported, `behavior "Doubled"`},
		{file("normalizer", `{"type":"Replace","pattern":{"Regex":"\\G"},"content":"x"}`), ErrUnsupported,
			`normalizer "Replace" with the pattern`},
		// Format violations.
		{file("pre_tokenizer", `{"type":"Split","pattern":{"Regex":"("},"behavior":"Isolated","invert":false}`), ErrInvalid,
			`has the pattern "(": end pattern with unmatched parenthesis`},
		{file("pre_tokenizer", `{"type":"Split","pattern":"x","behavior":"Isolated","invert":false}`), ErrInvalid,
			`has a string as pattern, not an object`},
		{file("pre_tokenizer", `{"type":"Split","pattern":{"String":"x"},"behavior":"Isolated"}`), ErrInvalid,
			`has no invert`},
		{file("pre_tokenizer", `{"type":"ByteLevel","trim_offsets":true}`), ErrInvalid,
			`pre_tokenizer "ByteLevel" has no add_prefix_space`},
		{file("pre_tokenizer", `{"add_prefix_space":true}`), ErrInvalid, `tokenizer.json: pre_tokenizer has no type`},
		{file("pre_tokenizer", `[]`), ErrInvalid, `pre_tokenizer is an array, not an object`},
		{file("normalizer", `{"type":"Replace","pattern":{"String":""},"content":"x"}`), ErrInvalid,
			`normalizer "Replace" replaces an empty string`},
		{file("post_processor", `{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}}],`+
			`"pair":[],"special_tokens":{}}`), ErrInvalid,
			`uses the special token "<s>", which its special_tokens does not have`},
		{file("post_processor", `{"type":"TemplateProcessing","single":[{"Sequence":{"id":"B","type_id":0}}],"pair":[],`+
			`"special_tokens":{}}`), ErrInvalid, `uses sequence "B" in single`},
		{file("post_processor", `{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"s"}}],"pair":[],`+
			`"special_tokens":{"s":{"ids":[-1]}}}`), ErrInvalid, `has "-1" as an id`},
		{file("pre_tokenizer", `{"type":"Metaspace"}`), ErrInvalid, `pre_tokenizer "Metaspace" has no replacement`},
		{file("pre_tokenizer", `{"type":"Metaspace","replacement":"ab"}`), ErrInvalid,
			`has "ab" as replacement, not one character`},
		{file("pre_tokenizer", `{"type":"Metaspace","replacement":"_","prepend_scheme":"last"}`), ErrUnsupported,
			`prepend_scheme "last"`},
		{file("pre_tokenizer", `{"type":"Metaspace","replacement":"_","add_prefix_space":false}`), ErrInvalid,
			`add_prefix_space false`},
		{file("pre_tokenizer", `{"type":"FixedLength","length":0}`), ErrInvalid, `the length 0`},
		{file("normalizer", `{"type":"Precompiled","precompiled_charsmap":"AA=="}`), ErrInvalid,
			`normalizer "Precompiled" has a charsmap of 1 bytes`},
		{file("normalizer", `{"type":"Precompiled","precompiled_charsmap":"?"}`), ErrInvalid, `not base64`},
		{file("normalizer", `{"type":"Precompiled","precompiled_charsmap":"/wAAAAAAAAA="}`), ErrInvalid,
			`a trie of 255 bytes in 4`},
		{file("normalizer", `{"type":"BertNormalizer","clean_text":true}`), ErrInvalid, `has no handle_chinese_chars`},
		{file("post_processor", `{"type":"BertProcessing","sep":["s",1],"cls":["c"]}`), ErrInvalid,
			`has a cls that is not [token, id]`},
		{file("decoder", `{"type":"Strip","content":" ","start":-1,"stop":0}`), ErrInvalid,
			`has a start that is not an integer`},
		{file("decoder", `{"type":"CTC","pad_token":"","word_delimiter_token":"|","cleanup":true}`), ErrInvalid,
			`empty pad_token`},
		{file("model", `{"type":"Unigram","unk_id":0}`), ErrInvalid, `model "Unigram" has no vocab`},
		{file("model", `{"type":"Unigram","unk_id":1,"vocab":[["a",0.5]]}`), ErrInvalid, `has the unk_id 1 and 1 tokens`},
		{file("model", `{"type":"Unigram","vocab":[["a",1e999]]}`), ErrInvalid, `the score 1e999 of token 0 is out of range`},
		{file("model", `{"type":"Unigram","vocab":[["a"]]}`), ErrInvalid,
			`model.vocab: offset 179: token 0 is not [token, score]`},
		{file("model", `{"type":"WordPiece","vocab":{},"unk_token":"a","max_input_chars_per_word":1}`), ErrInvalid,
			`model "WordPiece" has no continuing_subword_prefix`},
		{file("model", `{"type":"WordLevel","vocab":{}}`), ErrInvalid, `model "WordLevel" has no unk_token`},
		{`{"version":"1.0"}`, ErrInvalid, `tokenizer.json: there is no model`},
		{strings.Replace(file(), "1.0", "2.0", 1), ErrInvalid, `version: offset 11: version "2.0" is not 1.0`},
		{file("model", `{"type":"BPE","merges":[]}`), ErrInvalid, `model "BPE" has no vocab`},
		{file("model", `{"type":"BPE","vocab":{"a":0}}`), ErrInvalid, `model "BPE" has no merges`},
		{file("model", `{"vocab":{"a":0}}`), ErrInvalid, `model has no type`},
		{bpe(`{"a":0}`, `[]`, `,"fuse_unk":1`), ErrInvalid, `model "BPE" has a number as fuse_unk, not a boolean`},
		// Ids and merges.
		{bpe(`{"a":0,"b":0}`, `[]`, ``), ErrInvalid, `model.vocab: offset 174: tokens "a" and "b" have the same id 0`},
		{bpe(`{"a":-1}`, `[]`, ``), ErrInvalid, `model.vocab: offset 179: id -1 is out of range`},
		{bpe(`{"a":4294967296}`, `[]`, ``), ErrInvalid, `id 4294967296 is out of range`},
		{bpe(`{"a":2147483647}`, `[]`, ``), ErrInvalid, `id 2147483647 is out of range`},
		{bpe(`{"a":1.0}`, `[]`, ``), ErrInvalid, `id 1.0 is out of range`},
		{bpe(`{"a":"x"}`, `[]`, ``), ErrInvalid, `unexpected '"'; expected a value`},
		{bpe(`{"a":0}`, `["a z"]`, ``), ErrInvalid, `model.merges: offset 192: merge 0: token "z" is not in the vocabulary`},
		{bpe(`{"a":0}`, `[["z","a"]]`, ``), ErrInvalid, `merge 0: token "z" is not in the vocabulary`},
		{bpe(`{"a":0}`, `["a a"]`, ``), ErrInvalid, `merge 0: the merged token "aa" is not in the vocabulary`},
		{bpe(`{"a":0}`, `["a a a"]`, ``), ErrInvalid, `merge 0, "a a a", is not two tokens with one space between`},
		{bpe(`{"a":0}`, `["aa"]`, ``), ErrInvalid, `is not two tokens`},
		{bpe(`{"a":0}`, `[["a"]]`, ``), ErrInvalid, `merge 0 has 1 tokens, not 2`},
		{bpe(`{"a":0,"aa":1}`, `["a a",["a","a"]]`, ``), ErrInvalid, `merge 1 differs in form from the first`},
		{bpe(`{"a":0,"b":1}`, `[["a","b"]]`, `,"continuing_subword_prefix":"##"`), ErrInvalid,
			`token "b" is shorter than continuing_subword_prefix "##"`},
		{file("added_tokens", `[{"content":"x",`+added+`]`), ErrInvalid,
			`added_tokens[0]: offset 66: the id is missing or out of range`},
		{file("added_tokens", `[{"id":1,`+added+`]`), ErrInvalid, `the token has no content`},
		{file("added_tokens", `[{"id":1,"content":"x"}]`), ErrInvalid, `is missing or not a boolean`},
		{file("added_tokens", `[7]`), ErrInvalid, `added_tokens[0]: offset 66: a number, not an object`},
		{file("added_tokens", `[{"id":1,"content":"x","single_word":false,"lstrip":false,"rstrip":false,"normalized":true,`+
			`"special":false}]`,
			"normalizer", `{"type":"Replace","pattern":{"String":"x"},"content":""}`),
			ErrInvalid, `added_tokens: normalizing the token "x" leaves an empty string`},
		// JSON.
		{"", ErrInvalid, `tokenizer.json: offset 0: the file is empty`},
		{"\ufeff{}", ErrInvalid, `byte order mark`},
		{"[]", ErrInvalid, `tokenizer.json: offset 0: unexpected '['; expected an object`},
		{file()[:200], ErrInvalid, `tokenizer.json: model: offset 200: unexpected end of file in a string`},
		{file()[:210], ErrInvalid, `tokenizer.json: model.merges: offset 210: unexpected end of file; expected`},
		{file() + "x", ErrInvalid, `unexpected 'x'; expected the end of the file`},
		{`{"model":{"vocab":{"a` + "\xff" + `":0}}}`, ErrInvalid,
			`tokenizer.json: model.vocab: offset 21: byte 0xff is not valid UTF-8`},
		{`{"model":{"vocab":{"a\n` + "\xff" + `":0}}}`, ErrInvalid, `offset 23: byte 0xff is not valid UTF-8`},
		{`{"model":` + "\xff" + `}`, ErrInvalid, `model: offset 9: byte 0xff is not valid UTF-8`},
		{`{"x":"` + "a\x01" + `"}`, ErrInvalid, `x: offset 7: control character 0x01 in a string`},
		{`{"x":"\ud800"}`, ErrInvalid, `x: offset 6: invalid escape in a string`},
		{`{"x":"\q"}`, ErrInvalid, `invalid escape`},
		{`{"x":01}`, ErrInvalid, `unexpected '1'; expected a comma or the end of the object`},
		{`{"x":tru}`, ErrInvalid, `unexpected 't'; expected a value`},
		{`{"x":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`, ErrInvalid, `nested more than 128 levels deep`},
	} {
		_, err := Load([]byte(c.file), nil)
		tokenizertest.CheckError(t, c.want, err, c.kind)
		if err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

func TestConfigErrors(t *testing.T) {
	for config, want := range map[string]string{
		``:                                  `tokenizer_config.json: offset 0: the file is empty`,
		`[]`:                                `tokenizer_config.json: an array, not an object`,
		`{"bos_token":5}`:                   `tokenizer_config.json: bos_token: a number, not a string or object`,
		`{"eos_token":{"special":true}}`:    `tokenizer_config.json: eos_token: the token has no content`,
		`{"added_tokens_decoder":{"x":{}}}`: `tokenizer_config.json: added_tokens_decoder: key "x" is not an id`,
		`{"added_tokens_decoder":{"1":"x"}}`: `tokenizer_config.json: added_tokens_decoder: id 1: a string, ` +
			`not an object`,
		`{"extra_special_tokens":["x",1]}`:  `tokenizer_config.json: extra_special_tokens: a number`,
		`{"additional_special_tokens":"x"}`: `tokenizer_config.json: additional_special_tokens is a string`,
		"{\"bos_token\":\"\xc3\"}":          `tokenizer_config.json: offset 14: byte 0xc3 is not valid UTF-8`,
		`{"bos_token":"a"`:                  `tokenizer_config.json: offset 16: unexpected end of file`,
		`{"bos_token":{"content":"x","lstrip":1}}`: `tokenizer_config.json: bos_token: token "x": ` +
			`lstrip is missing or not a boolean`,
	} {
		_, err := Load([]byte(file()), []byte(config))
		tokenizertest.CheckError(t, config, err, ErrInvalid)
		if err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// Objects without the reference's __type are accepted as tokens too, because published configurations have them.
func TestTokenObjects(t *testing.T) {
	tok, err := Load([]byte(file()), []byte(`{"bos_token":{"content":"ab"},"eos_token":{"content":"<e>","special":true}}`))
	if err != nil {
		t.Fatal(err)
	}
	if id, ok := tok.BOS(); !ok || id != 2 {
		t.Errorf("BOS %d %v", id, ok)
	}
	if id, ok := tok.EOS(); !ok || id != 3 || tok.Size() != 4 {
		t.Errorf("EOS %d %v, size %d", id, ok, tok.Size())
	}
}

func TestVocabulary(t *testing.T) {
	tok := loadFixture(t, "llama3") // ids 1256 and 2000 follow unused ids
	if tok.Size() != 2001 {
		t.Errorf("size %d", tok.Size())
	}
	for id := range int32(tok.Size()) {
		token, ok := tok.Token(id)
		if !ok {
			continue
		}
		if back, ok := tok.ID(token); !ok || back != id {
			t.Errorf("Token(%d) is %q, whose ID is %d %v", id, token, back, ok)
		}
	}
	for _, id := range []int32{-1, 1999, 2001, 1 << 30} {
		if token, ok := tok.Token(id); ok {
			t.Errorf("Token(%d) is %q", id, token)
		}
	}
	if id, ok := tok.ID("no such token"); ok {
		t.Errorf("an unknown token has id %d", id)
	}
	if _, err := tok.Decode([]int32{1, -1}, false); err == nil || !strings.Contains(err.Error(), "id -1 at position 1") {
		t.Errorf("decoding -1: %v", err)
	}
}

// The model's keys may have any order: merges may precede the keys that they need.
func TestModelKeyOrder(t *testing.T) {
	for _, model := range []string{
		`{"merges":["a ##b"],"vocab":{"a":0,"##b":1,"ab":2},"continuing_subword_prefix":"##","type":"BPE"}`,
		`{"vocab":{"a":0,"##b":1,"ab":2},"merges":["a ##b"],"continuing_subword_prefix":"##","type":"BPE"}`,
		`{"continuing_subword_prefix":"##","merges":["a ##b"],"type":"BPE","vocab":{"a":0,"##b":1,"ab":2}}`,
		`{"continuing_subword_prefix":"##","vocab":{"a":0,"##b":1,"ab":2},"merges":["#version: 0.2","a ##b"]}`,
	} {
		tok, err := Load([]byte(file("model", model)), nil)
		if err != nil {
			t.Errorf("%s: %v", model, err)
			continue
		}
		checkEncode(t, tok, encodeCase{Text: "ab", IDs: []int32{2}})
	}
}

func TestMissingUnk(t *testing.T) {
	tok, err := Load([]byte(file("model", `{"type":"BPE","vocab":{"a":0},"merges":[],"unk_token":"<unk>"}`)), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = tok.Encode(t.Context(), "ax", false)
	tokenizertest.CheckError(t, "ax", err, ErrToken)
}
