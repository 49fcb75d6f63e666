package tokenizer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/tokenizer/chars"
)

// hostile makes tokenizer.json files whose parts are each allowed, in combinations that no one trains.
type hostile struct{ *runtest.Choices }

func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// text is a short text of what parts treat differently, or of any bytes.
func (h hostile) text() string {
	if h.Yes(6) {
		return string(h.Bytes())
	}
	return h.Pick("a", "b", " ", "", "ab", "▁", "##", "\n", "é", "e\u0301", "日", "😀", "\u200d", "<s>", "Ġ", "<0x61>", "aa",
		"0", "A", "\u0130", "ﬁ", "\xff", "'s", "\x00", "ß", "\U000e0001", strings.Repeat("a", 300), "|", "</w>")
}

func (h hostile) texts(most int) string { return h.Joined(most, "", h.text) }

func (h hostile) flag() string { return h.Pick("false", "true") }

// pattern is a regular expression or a text.
func (h hostile) pattern() string {
	if h.Yes(3) {
		return `{"String":` + quoted(h.texts(2)) + `}`
	}
	return `{"Regex":` + quoted(h.Pick(`\s+`, `a*`, ``, `(a|b)+`, `\p{L}+|\p{N}{1,3}|[^\s\p{L}\p{N}]+`, `(?i:'s|'t)`,
		`^`, `$`,
		`\b`, `(a*)*b`, `(?=a)`, `(?<!a)b`, `[^a]`, `\s+(?!\S)|\s+`, `.`, `\X`, `(?>a+)`, `\p{Han}`, `\u0130`, `a{2,}?`,
		`(`)) +
		`}`
}

// sequence is a part, or several of them in a Sequence with the key.
func (h hostile) sequence(kind func() string, key string, depth int) string {
	if depth < 3 && h.Yes(4) {
		inner := h.Joined(4, ",", func() string { return h.sequence(kind, key, depth+1) })
		return `{"type":"Sequence","` + key + `":[` + inner + `]}`
	}
	return kind()
}

func (h hostile) normalizer() string {
	switch h.N(11) {
	case 0:
		return `{"type":"` + h.Pick("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "ByteLevel") + `"}`
	case 1:
		return `{"type":"Prepend","prepend":` + quoted(h.texts(2)) + `}`
	case 2, 3, 4:
		return `{"type":"Replace","pattern":` + h.pattern() + `,"content":` + quoted(h.texts(3)) + `}`
	case 5:
		return `{"type":"Strip","strip_left":` + h.flag() + `,"strip_right":` + h.flag() + `}`
	case 6:
		return `{"type":"Precompiled","precompiled_charsmap":` + quoted(h.Pick("BAAAAAAAAAAAAeAA=", "BAAAAAAAAAAAeAA=",
			"")) + `}`
	default:
		return `{"type":"BertNormalizer","clean_text":` + h.flag() + `,"handle_chinese_chars":` + h.flag() +
			`,"strip_accents":` + h.Pick("null", "true", "false") + `,"lowercase":` + h.flag() + `}`
	}
}

func (h hostile) preTokenizer() string {
	behavior := `"behavior":"` + h.Pick("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous") + `"`
	switch h.N(8) {
	case 0, 1:
		return `{"type":"ByteLevel","add_prefix_space":` + h.flag() + `,"trim_offsets":true,"use_regex":` + h.flag() + `}`
	case 2, 3:
		return `{"type":"Split","pattern":` + h.pattern() + `,` + behavior + `,"invert":` + h.flag() + `}`
	case 4:
		return `{"type":"Digits","individual_digits":` + h.flag() + `}`
	case 5:
		return `{"type":"Punctuation",` + behavior + `}`
	case 6:
		return `{"type":"Metaspace","replacement":` + quoted(h.Pick("▁", "a", " ", "")) + `,"prepend_scheme":"` +
			h.Pick("always", "first", "never") + `","split":` + h.flag() + `}`
	default:
		return `{"type":"` + h.Pick("Whitespace", "WhitespaceSplit", "BertPreTokenizer", "UnicodeScripts") + `"}`
	}
}

func (h hostile) decoder() string {
	switch h.N(9) {
	case 0:
		return `{"type":"ByteLevel"}`
	case 1:
		return `{"type":"ByteFallback"}`
	case 2:
		return `{"type":"Fuse"}`
	case 3:
		return `{"type":"Replace","pattern":` + h.pattern() + `,"content":` + quoted(h.texts(2)) + `}`
	case 4:
		return fmt.Sprintf(`{"type":"Strip","content":%s,"start":%d,"stop":%d}`, quoted(h.Pick(" ", "a", "▁")), h.N(4),
			h.N(4))
	case 5:
		return `{"type":"Metaspace","replacement":"▁","prepend_scheme":"` + h.Pick("always", "first", "never") + `"}`
	case 6:
		return `{"type":"WordPiece","prefix":` + quoted(h.Pick("##", "", "a")) + `,"cleanup":` + h.flag() + `}`
	case 7:
		return `{"type":"BPEDecoder","suffix":` + quoted(h.Pick("</w>", "", "a")) + `}`
	default:
		return `{"type":"CTC","pad_token":` + quoted(h.text()) + `,"word_delimiter_token":` + quoted(h.text()) +
			`,"cleanup":` + h.flag() + `}`
	}
}

// vocabulary lists tokens: single ones, those that merges make of them, and bytes.
func (h hostile) vocabulary() (tokens []string, merges [][2]string) {
	for range 1 + h.N(12) {
		tokens = append(tokens, h.text())
	}
	if h.Yes(3) {
		for b := range 256 {
			tokens = append(tokens, fmt.Sprintf("<0x%02X>", b))
		}
	}
	if h.Yes(3) {
		tokens = append(tokens, byteTokens()...)
	}
	for range h.N(12) {
		m := [2]string{tokens[h.N(min(len(tokens), 256))], tokens[h.N(min(len(tokens), 256))]}
		merges = append(merges, m)
		tokens = append(tokens, m[0]+m[1])
	}
	return tokens, merges
}

func byteTokens() (tokens []string) {
	for b := range 256 {
		tokens = append(tokens, chars.ToByteLevel(string([]byte{byte(b)})))
	}
	return tokens
}

// idsOf is the vocabulary as an object. Repeated tokens have the first id, as a file without repeated keys.
func idsOf(tokens []string) string {
	ids := map[string]int{}
	for i, token := range tokens {
		if _, known := ids[token]; !known {
			ids[token] = i
		}
	}
	b, err := json.Marshal(ids)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func (h hostile) model() string {
	tokens, merges := h.vocabulary()
	unknown := quoted(tokens[h.N(len(tokens)%256+1)%len(tokens)])
	switch h.N(5) {
	case 0:
		var scored []string
		for _, token := range tokens {
			scored = append(scored, "["+quoted(token)+","+h.Pick("-1", "0", "-1.5", "3", "-1e30", "-0.001")+"]")
		}
		return fmt.Sprintf(`{"type":"Unigram","unk_id":%s,"byte_fallback":%s,"vocab":[%s]}`, h.Pick("0", "null", "1"),
			h.flag(),
			strings.Join(scored, ","))
	case 1:
		return fmt.Sprintf(`{"type":"WordPiece","vocab":%s,"unk_token":%s,"continuing_subword_prefix":%s,`+
			`"max_input_chars_per_word":%s}`, idsOf(tokens), unknown, quoted(h.Pick("##", "", "a")), h.Pick("100", "1", "3"))
	default:
		b, err := json.Marshal(merges)
		if err != nil {
			panic(err)
		}
		return fmt.Sprintf(`{"type":"BPE","vocab":%s,"merges":%s,"unk_token":%s,"continuing_subword_prefix":%s,`+
			`"end_of_word_suffix":%s,"fuse_unk":%s,"byte_fallback":%s,"ignore_merges":%s}`, idsOf(tokens),
			strings.ReplaceAll(string(b), "null", "[]"), h.Pick("null", unknown), h.Pick("null", `""`, `"##"`),
			h.Pick("null", `""`, `"</w>"`), h.flag(), h.flag(), h.flag())
	}
}

func (h hostile) added() string {
	return "[" + h.Joined(4, ",", func() string {
		return fmt.Sprintf(`{"id":%d,"content":%s,"single_word":%s,"lstrip":%s,"rstrip":%s,"normalized":%s,"special":%s}`,
			h.N(256), quoted(h.texts(3)), h.flag(), h.flag(), h.flag(), h.flag(), h.flag())
	}) + "]"
}

// maybe is a part, or null.
func (h hostile) maybe(kind func() string, key string) string {
	if h.N(3) == 0 {
		return "null"
	}
	return h.sequence(kind, key, 0)
}

// FuzzHostileParts: a tokenizer of allowed parts encodes a text to ids below its size, the same each time; a stream of
// them equals decoding; its compiled form gives the same.
func FuzzHostileParts(f *testing.F) {
	for i := range 48 {
		seed := make([]byte, 64)
		for j := range seed {
			seed[j] = byte(i*37 + j*j*11 + i*j*5)
		}
		f.Add(seed, "a ab é 12\n<s>▁ab ﬁ\u0301日")
	}
	f.Fuzz(func(t *testing.T, choices []byte, text string) {
		h := hostile{runtest.NewChoices(choices)}
		data := []byte(file("model", h.model(), "normalizer", h.maybe(h.normalizer, "normalizers"),
			"pre_tokenizer", h.maybe(h.preTokenizer, "pretokenizers"), "decoder", h.maybe(h.decoder, "decoders"),
			"added_tokens", h.added()))
		tok, err := Load(data, nil)
		if err != nil {
			return
		}
		checkLoaded(t, tok)
		ids, err := tok.Encode(t.Context(), text, true)
		again, errAgain := tok.Encode(t.Context(), text, true)
		if !slices.Equal(ids, again) || (err == nil) != (errAgain == nil) {
			t.Fatalf("%q has ids %v, %v, then %v, %v: %s", text, ids, err, again, errAgain, data)
		}
		checkIDs(t, tok, ids, data)
		compiled, form, err := Compile(data, nil)
		if err != nil || form == nil {
			return // it has no compiled form
		}
		loaded, err := LoadCompiled(form, nil)
		if err != nil {
			t.Fatalf("the compiled form is not read: %v: %s", err, data)
		}
		for _, other := range []*Tokenizer{compiled, loaded} {
			got, err := other.Encode(t.Context(), text, true)
			if err == nil && !slices.Equal(got, ids) {
				t.Fatalf("%q has ids %v, compiled %v: %s", text, ids, got, data)
			}
		}
	})
}

func checkIDs(t *testing.T, tok *Tokenizer, ids []int32, data []byte) {
	t.Helper()
	s := tok.Stream(false)
	got := ""
	for _, id := range ids {
		if id < 0 || int(id) >= tok.Size() {
			t.Fatalf("id %d, but the size is %d: %s", id, tok.Size(), data)
		}
		got += s.Next(id)
	}
	got += s.Flush()
	if want, err := tok.Decode(ids, false); err != nil || got != want {
		t.Fatalf("%v: streamed %q, want %q, %v: %s", ids, got, want, err, data)
	}
}

// FuzzByteLevel: with a token for each byte and nothing that changes the text, every text comes back, whatever merges
// and patterns there are.
func FuzzByteLevel(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9}, "hello  日\xff\n")
	f.Add([]byte{200, 100, 50, 25, 12, 6, 3, 1, 0, 90, 30}, "aaaa bbbb")
	f.Fuzz(func(t *testing.T, choices []byte, text string) {
		h := hostile{runtest.NewChoices(choices)}
		tokens := byteTokens()
		merges := [][2]string{}
		for range h.N(24) {
			m := [2]string{tokens[int(h.Byte())], tokens[len(tokens)-1-h.N(min(len(tokens), 256))]}
			merges = append(merges, m)
			tokens = append(tokens, m[0]+m[1])
		}
		b, err := json.Marshal(merges)
		if err != nil {
			t.Fatal(err)
		}
		pre := `{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":` + h.flag() + `}`
		if h.Yes(2) {
			pre = `{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":` + h.pattern() + `,"behavior":"` +
				h.Pick("Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous") + `","invert":` + h.flag() + `},` + pre +
				`]}`
		}
		data := []byte(file("model", fmt.Sprintf(`{"type":"BPE","vocab":%s,"merges":%s}`, idsOf(tokens), b),
			"pre_tokenizer", pre, "decoder", `{"type":"ByteLevel"}`))
		tok, err := Load(data, nil)
		if err != nil {
			return
		}
		ids, err := tok.Encode(t.Context(), text, false)
		if err != nil {
			return // a pattern that took too long
		}
		checkIDs(t, tok, ids, data)
		if got, err := tok.Decode(ids, false); err != nil || got != chars.ValidText(text) {
			t.Fatalf("%q decodes to %q, %v: %s", text, got, err, data)
		}
	})
}
