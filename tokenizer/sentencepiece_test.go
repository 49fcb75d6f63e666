package tokenizer

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/tokenizer/sentencepiece"
	"github.com/ingotml/ingot/tokenizer/tokenizertest"
)

// sentencePieces are the fixtures of testdata/gen/tokenizers/spm_models.py.
var sentencePieces = []string{"sp-bpe", "sp-bpe-plain", "sp-unigram", "sp-unigram-bytes"}

func readFixture(t testing.TB, path ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{"testdata", familyDir}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func loadSentencePiece(t testing.TB, name string) *Tokenizer {
	t.Helper()
	tok, err := LoadSentencePiece(readFixture(t, name, "tokenizer.model"), readFixture(t, name, "tokenizer_config.json"))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// compiledSentencePiece returns a tokenizer of the compiled form of a tokenizer.model.
func compiledSentencePiece(t testing.TB, name string) *Tokenizer {
	t.Helper()
	config := readFixture(t, name, "tokenizer_config.json")
	_, form, err := CompileSentencePiece(readFixture(t, name, "tokenizer.model"), config)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := LoadCompiledSentencePiece(form, config)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestSentencePiece(t *testing.T) {
	var want map[string]struct {
		Encode []encodeCase `json:"encode"`
		Decode []struct {
			IDs  []int32 `json:"ids"`
			Text string  `json:"text"`
		} `json:"decode"`
		Specials []string `json:"specials"`
		Digests  []string `json:"digests"`
	}
	tokenizertest.ReadJSON(t, familyDir+"/sentencepiece.json", &want)
	type load func(t testing.TB, name string) *Tokenizer
	for i := range 2 * len(sentencePieces) {
		name := sentencePieces[i/2]
		how, load := "file", load(loadSentencePiece)
		if i%2 == 1 {
			how, load = "compiled", compiledSentencePiece
		}
		t.Run(name+"/"+how, func(t *testing.T) {
			t.Parallel()
			tok := load(t, name)
			golden := want[name]
			for _, c := range golden.Encode {
				checkEncode(t, tok, c)
			}
			for _, c := range golden.Decode {
				if got, err := tok.Decode(c.IDs, true); err != nil || got != c.Text {
					t.Errorf("Decode(%v):\n got %q, %v\nwant %q", c.IDs, got, err, c.Text)
				}
			}
			if t.Failed() {
				return
			}
			g := newGenerator(t, golden.Specials)
			g.skip = true
			batches := golden.Digests
			if how == "compiled" || runtest.Race && !runtest.Long() {
				batches = batches[:5]
			}
			for i, want := range batches {
				if got := g.digest(t, tok, tok.model.Size(), 100); got != want {
					t.Fatalf("batch %d: %s, want %s", i, got, want)
				}
			}
		})
	}
}

// The configuration determines special tokens in the text, BOS, EOS and the space prefix.
func TestSentencePieceConfig(t *testing.T) {
	model := readFixture(t, "sp-bpe", "tokenizer.model")
	show := func(config, text string, special bool) string {
		t.Helper()
		tok, err := LoadSentencePiece(model, []byte(config))
		if err != nil {
			t.Fatal(err)
		}
		ids, err := tok.Encode(t.Context(), text, special)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, id := range ids {
			token, _ := tok.Token(id)
			out = append(out, token)
		}
		return strings.Join(out, " ")
	}
	const added = `,"added_tokens_decoder":{"5000":{"content":"[X]","special":true,"normalized":false}}`
	for _, c := range []struct{ config, text, want string }{
		{`{}`, "the", "▁the"},
		{`{"add_bos_token":true}`, "the", "<s> ▁the"},
		{`{"tokenizer_class":"LlamaTokenizer"}`, "the", "<s> ▁the"},
		{`{"tokenizer_class":"LlamaTokenizer","add_bos_token":false,"add_eos_token":true}`, "the", "▁the </s>"},
		{`{"tokenizer_class":"T5Tokenizer"}`, "the", "▁the </s>"},
		{`{"add_prefix_space":false}`, " the", "▁the"},
		{`{}`, "<s>the</s> the", "<s> the </s> ▁the"},
		{`{"legacy":true}`, "<s>the</s> the", "<s> ▁the </s> ▁▁ the"},
		{`{` + added[1:] + `}`, "the[X]the", "▁the [X] the"},
		{`{"add_bos_token":true,"bos_token":"[X]"` + added + `}`, "the", "[X] ▁the"},
	} {
		got := show(c.config, c.text, true)
		if strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(c.want, " ", "") || !slices.Equal(strings.Fields(got)[:1],
			strings.Fields(c.want)[:1]) {
			t.Errorf("%s, %q: %s, want %s", c.config, c.text, got, c.want)
		}
	}
}

func TestSentencePieceErrors(t *testing.T) {
	model := readFixture(t, "sp-bpe", "tokenizer.model")
	field := func(number, wire byte, data ...byte) []byte { return append([]byte{number<<3 | wire}, data...) }
	piece := func(text string, kind byte) []byte {
		body := append(field(1, 2, byte(len(text))), text...)
		body = append(body, field(3, 0, kind)...)
		return append(field(1, 2, byte(len(body))), body...)
	}
	trainer := func(body ...byte) []byte { return append(field(2, 2, byte(len(body))), body...) }
	unk := piece("<unk>", sentencepiece.Unknown)
	for _, c := range []struct {
		data []byte
		kind error
		want string
	}{
		{nil, ErrInvalid, "tokenizer.model: no piece is of type UNKNOWN"},
		{model[:len(model)-3], ErrInvalid, "the message ends inside a field"},
		{[]byte("{}"), ErrInvalid, "tokenizer.model: offset 0: wire type 3"},
		{[]byte{0x80}, ErrInvalid, "offset 0: invalid field key"},
		{field(3, 0, 0xff), ErrInvalid, "offset 1: truncated number"},
		{slices.Concat(unk, unk), ErrInvalid, `piece 1, "<unk>", is a duplicate`},
		{slices.Concat(unk, piece("<u>", sentencepiece.Unknown)), ErrInvalid, "pieces 0 and 1 are both of type UNKNOWN"},
		{slices.Concat(unk, piece("", sentencepiece.Normal)), ErrInvalid, "piece 1 is empty"},
		{slices.Concat(unk, piece("a", 9)), ErrInvalid, `piece 1, "a", has the unknown type 9`},
		{slices.Concat(unk, piece("<0x41>", sentencepiece.Byte)), ErrInvalid,
			`piece 1, "<0x41>", is an unexpected byte piece`},
		{slices.Concat(unk, trainer(0x98, 2, 1)), ErrInvalid, "0 byte pieces, not 256"},
		{slices.Concat(unk, trainer(0x18, 3)), ErrUnsupported, "model type 3"},
		{slices.Concat(unk, trainer(0xc0, 1, 1)), ErrUnsupported, "treat_whitespace_as_suffix"},
		{slices.Concat(unk, piece("a", sentencepiece.Unused), trainer(0x18, 2)), ErrUnsupported,
			`piece 1, "a", is marked as unused`},
		{slices.Concat(unk, field(5, 2, 3, 0x12, 1, 'x')), ErrUnsupported, "a denormalizer"},
		{slices.Concat(unk, field(3, 2, 3, 0x12, 1, 'x')), ErrInvalid, "a charsmap of 1 bytes"},
	} {
		_, err := LoadSentencePiece(c.data, nil)
		tokenizertest.CheckError(t, c.want, err, c.kind)
		if err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
	_, err := LoadSentencePiece(model, []byte(`[]`))
	tokenizertest.CheckError(t, "[]", err, ErrInvalid)
}
