package tokenizer

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ingotml/ingot/tokenizer/chars"
	"github.com/ingotml/ingot/tokenizer/sentencepiece"
)

// FuzzLoad checks that no tokenizer.json makes Load, or the loaded tokenizer, panic or hang.
func FuzzLoad(f *testing.F) {
	const added = `[{"id":9,"content":"<s>","single_word":true,"lstrip":true,"rstrip":false,"normalized":true,` +
		`"special":true}]`
	for _, seed := range []struct{ data, config string }{
		{file(), `{"bos_token":{"content":"<s>"},"added_tokens_decoder":{"7":{"content":"x"}}}`},
		{file("added_tokens", added, "pre_tokenizer", `{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true}`,
			"decoder", `{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true}`), `{"extra_special_tokens":["q"]}`},
		{file("pre_tokenizer", `{"type":"Split","pattern":{"Regex":"(?i:a+)|[^\\p{L}&&[b-z]]"},"behavior":"MergedWithNext",`+
			`"invert":true}`), `{}`},
		{file("pre_tokenizer", `{"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},`+
			`{"type":"Split","pattern":{"String":"a"},"behavior":"Contiguous","invert":false}]}`), `{}`},
		{file("normalizer", `{"type":"Sequence","normalizers":[{"type":"NFKC"},{"type":"Replace","pattern":{"Regex":"a*"},`+
			`"content":"b"}]}`, "added_tokens", added), `{}`},
		{file("model", `{"type":"Unigram","unk_id":0,"byte_fallback":true,"vocab":[["a",-1],["ab",-1.5],["▁",-2],`+
			`["<0x0A>",-3]]}`, "normalizer",
			`{"type":"Sequence","normalizers":[{"type":"Nmt"},{"type":"Strip","strip_left":true,"strip_right":true},`+
				`{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true},`+
				`{"type":"Precompiled","precompiled_charsmap":"BAAAAAAAAAAAeAA="}]}`,
			"pre_tokenizer", `{"type":"Metaspace","replacement":"▁","prepend_scheme":"first","split":true}`,
			"decoder", `{"type":"Sequence","decoders":[{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Replace",`+
				`"pattern":{"String":"▁"},"content":" "},{"type":"Strip","content":" ","start":1,"stop":1}]}`), `{}`},
		{file("model", `{"type":"WordPiece","vocab":{"a":0,"##a":1,"[UNK]":2},"unk_token":"[UNK]",`+
			`"continuing_subword_prefix":"##","max_input_chars_per_word":9}`,
			"pre_tokenizer",
			`{"type":"Sequence","pretokenizers":[{"type":"BertPreTokenizer"},{"type":"Punctuation","behavior":"Contiguous"},`+
				`{"type":"Whitespace"},{"type":"FixedLength","length":2}]}`,
			"decoder", `{"type":"Sequence","decoders":[{"type":"WordPiece","prefix":"##","cleanup":true},{"type":"CTC",`+
				`"pad_token":"p","word_delimiter_token":"|","cleanup":true},{"type":"BPEDecoder","suffix":"</w>"}]}`,
			"post_processor", `{"type":"BertProcessing","sep":["a",0],"cls":["a",0]}`), `{}`},
		{file("post_processor", `{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"s","type_id":0}},`+
			`{"Sequence":{"id":"A","type_id":0}}],"special_tokens":{"s":{"ids":[5]}}}`), `{}`},
		{file("model", `{"type":"BPE","unk_token":"a","continuing_subword_prefix":"#","end_of_word_suffix":"/",`+
			`"fuse_unk":true,"byte_fallback":true,"ignore_merges":true,"vocab":{"a":0,"#b":1,"ab":2,"<0x61>":3},`+
			`"merges":["a #b"]}`), `{}`},
	} {
		f.Add([]byte(seed.data), []byte(seed.config))
	}
	f.Fuzz(func(t *testing.T, data, config []byte) {
		tok, err := Load(data, config)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("the error has more than one line: %q", err)
			}
			return
		}
		checkLoaded(t, tok)
	})
}

// checkLoaded checks that a tokenizer returns ids below its size, and that streaming equals decoding.
func checkLoaded(t *testing.T, tok *Tokenizer) {
	t.Helper()
	ids, err := tok.Encode(t.Context(), " a aab é 12\n<s>▁ab ﬁ\u0301日", true)
	if err != nil {
		return
	}
	for _, id := range ids {
		if id < 0 || int(id) >= tok.Size() && tok.template == nil {
			t.Errorf("id %d, but the size is %d", id, tok.Size())
		}
	}
	want, err := tok.Decode(ids, true)
	if err != nil {
		t.Fatal(err)
	}
	s := tok.Stream(true)
	got := ""
	for _, id := range ids {
		next := s.Next(id)
		if !utf8.ValidString(next) {
			t.Errorf("Next(%d) is %q", id, next)
		}
		got += next
	}
	if got += s.Flush(); got != want {
		t.Errorf("%v: streamed %q, want %q", ids, got, want)
	}
}

// smallModel returns a tokenizer.model with one piece of most types.
func smallModel(kind string) string {
	piece := func(text string, score byte, kind byte) string {
		body := "\x0a" + string(rune(len(text))) + text + "\x15\x00\x00" + string([]byte{score, 0xc0}) +
			"\x18" + string(rune(kind))
		return "\x0a" + string(rune(len(body))) + body
	}
	return piece("<unk>", 0, sentencepiece.Unknown) + piece("<s>", 0, sentencepiece.Control) +
		piece("a", 1, sentencepiece.Normal) + piece("b", 2, sentencepiece.Normal) +
		piece("ab", 0, sentencepiece.Normal) + piece("x", 0, sentencepiece.UserDefined) + "\x12\x02\x18" + kind
}

// FuzzLoadSentencePiece is FuzzLoad for tokenizer.model.
func FuzzLoadSentencePiece(f *testing.F) {
	for _, kind := range []string{"\x01", "\x02"} {
		f.Add([]byte(smallModel(kind)), []byte(`{"legacy":true,"add_bos_token":true}`))
		f.Add([]byte(smallModel(kind)+"\x1a\x0e\x12\x0a\x04\x00\x00\x00\x00\x00\x00\x00x\x00\x20\x00"),
			[]byte(`{}`))
	}
	f.Add(readFixture(f, "sp-unigram", "tokenizer.model")[:4000], []byte(`{"tokenizer_class":"T5Tokenizer"}`))
	f.Fuzz(func(t *testing.T, model, config []byte) {
		tok, err := LoadSentencePiece(model, config)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("the error has more than one line: %q", err)
			}
			return
		}
		checkLoaded(t, tok)
	})
}

// FuzzEncode checks that every kind of tokenizer encodes every text to ids below its size, and that streaming equals
// decoding.
func FuzzEncode(f *testing.F) {
	for _, s := range []string{"", "hello", " a\n\tb", "日本😀 ﬁ\u0301", "\xff\xe2\x82", "<s>x</s>", "▁▁ ▁a",
		"ｱﾞ\u0600a\u00a9\u200d\u00a9"} {
		f.Add(s)
	}
	var toks []*Tokenizer
	for _, name := range families {
		toks = append(toks, loadFixture(f, familyDir+"/"+name))
	}
	for _, name := range sentencePieces {
		toks = append(toks, loadSentencePiece(f, name))
	}
	f.Fuzz(func(t *testing.T, text string) {
		for i, tok := range toks {
			ids, err := tok.Encode(t.Context(), text, true)
			if err != nil {
				t.Fatalf("tokenizer %d: %v", i, err)
			}
			s := tok.Stream(false)
			got := ""
			for _, id := range ids {
				if id < 0 || int(id) >= tok.Size() {
					t.Fatalf("tokenizer %d: id %d, but the size is %d", i, id, tok.Size())
				}
				got += s.Next(id)
			}
			got += s.Flush()
			if want, err := tok.Decode(ids, false); err != nil || got != want {
				t.Errorf("tokenizer %d: %q: streamed %q, want %q, %v", i, text, got, want, err)
			}
		}
	})
}

// FuzzEncodeDecode checks that byte-level tokenizers without a normalizer reproduce every text.
func FuzzEncodeDecode(f *testing.F) {
	for _, s := range []string{"", "hello", " a\n\tb", "it's IT'\u017f", "日本😀", "\xff\xe2\x82", "<|eot_id|>x",
		"  \r\n 123abc"} {
		f.Add(s)
	}
	var toks []*Tokenizer
	for _, name := range []string{"gpt2", "llama3", "o200k", "deepseek"} {
		toks = append(toks, loadFixture(f, name))
	}
	f.Fuzz(func(t *testing.T, text string) {
		valid := chars.ValidText(text)
		if !utf8.ValidString(valid) || utf8.ValidString(text) && valid != text {
			t.Fatalf("%q reads as %q", text, valid)
		}
		for i, tok := range toks {
			ids, err := tok.Encode(t.Context(), text, false)
			if err != nil {
				t.Fatal(err)
			}
			got, err := tok.Decode(ids, false)
			if err != nil {
				t.Fatal(err)
			}
			want := valid
			if i == 1 { // its added tokens include the white space around them
				want, got = strings.Join(strings.Fields(want), ""), strings.Join(strings.Fields(got), "")
			}
			if got != want {
				t.Errorf("tokenizer %d: %q decodes to %q", i, want, got)
			}
		}
	})
}
