package tokenizer

import (
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/tokenizer/chars"
	"github.com/ingotml/ingot/tokenizer/tokenizertest"
)

var samples = flag.String("samples", "", "`NAME=FILE` with what trained.py sample NAME printed")

// encodeCase is the reference's result for one text.
type encodeCase struct {
	Text    string  `json:"text"`
	Hex     string  `json:"hex"` // of a text that is not UTF-8
	IDs     []int32 `json:"ids"`
	Special []int32 `json:"special"` // absent when equal to IDs
}

type decodeCase struct {
	IDs  []int32 `json:"ids"`
	Text string  `json:"text"`
	Skip *string `json:"skip"` // absent when equal to Text
}

func loadFixture(t testing.TB, name string) *Tokenizer {
	t.Helper()
	read := func(file string) []byte {
		data, err := os.ReadFile(filepath.Join("testdata", name, file))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	tok, err := Load(read("tokenizer.json"), read("tokenizer_config.json"))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func checkEncode(t *testing.T, tok *Tokenizer, c encodeCase) {
	t.Helper()
	text := c.Text
	if c.Hex != "" {
		b, err := hex.DecodeString(c.Hex)
		if err != nil {
			t.Fatal(err)
		}
		text = string(b)
	}
	special := c.Special
	if special == nil {
		special = c.IDs
	}
	for _, run := range []struct {
		special bool
		want    []int32
	}{{false, c.IDs}, {true, special}} {
		got, err := tok.Encode(t.Context(), text, run.special)
		if err != nil {
			t.Errorf("Encode(%q, %v): %v", text, run.special, err)
		} else if fmt.Sprint(got) != fmt.Sprint(run.want) {
			t.Errorf("Encode(%q, %v):\n got %v\nwant %v", text, run.special, got, run.want)
		}
	}
}

func checkDecode(t *testing.T, tok *Tokenizer, c decodeCase) {
	t.Helper()
	skip := c.Text
	if c.Skip != nil {
		skip = *c.Skip
	}
	for _, run := range []struct {
		skip bool
		want string
	}{{false, c.Text}, {true, skip}} {
		got, err := tok.Decode(c.IDs, run.skip)
		if err != nil {
			t.Errorf("Decode(%v, %v): %v", c.IDs, run.skip, err)
		} else if got != run.want {
			t.Errorf("Decode(%v, %v):\n got %q\nwant %q", c.IDs, run.skip, got, run.want)
		}
		s := tok.Stream(run.skip)
		streamed := ""
		for _, id := range c.IDs {
			streamed += s.Next(id)
		}
		if streamed += s.Flush(); streamed != run.want {
			t.Errorf("streaming %v, %v:\n got %q\nwant %q", c.IDs, run.skip, streamed, run.want)
		}
	}
}

func TestTrained(t *testing.T) {
	for _, name := range tokenizertest.Trained {
		t.Run(name, func(t *testing.T) { checkGolden(t, name) })
	}
}

func checkGolden(t *testing.T, name string) {
	t.Helper()
	tok := loadFixture(t, name)
	var golden struct {
		Encode []encodeCase `json:"encode"`
		Decode []decodeCase `json:"decode"`
	}
	tokenizertest.ReadJSON(t, name+"/golden.json", &golden)
	for _, c := range golden.Encode {
		checkEncode(t, tok, c)
	}
	for _, c := range golden.Decode {
		checkDecode(t, tok, c)
	}
}

// withAlphabet adds the byte-level alphabet to the model of a tokenizer.json, with ids 0 to 255 in code point order.
func withAlphabet(file map[string]any) {
	var letters []rune
	for c, b := range chars.RuneToByte {
		if b >= 0 {
			letters = append(letters, rune(c))
		}
	}
	vocab := file["model"].(map[string]any)["vocab"].(map[string]any)
	for i, c := range letters {
		vocab[string(c)] = i
	}
}

func toJSON(t testing.TB, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestSmall(t *testing.T) {
	var all []struct {
		Name      string         `json:"name"`
		Tokenizer map[string]any `json:"tokenizer"`
		Alphabet  bool           `json:"alphabet"`
		Encode    []encodeCase   `json:"encode"`
		Decode    []decodeCase   `json:"decode"`
	}
	tokenizertest.ReadJSON(t, "small.json", &all)
	for _, x := range all {
		t.Run(x.Name, func(t *testing.T) {
			if x.Alphabet {
				withAlphabet(x.Tokenizer)
			}
			tok, err := Load(toJSON(t, x.Tokenizer), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range x.Encode {
				checkEncode(t, tok, c)
			}
			for _, c := range x.Decode {
				checkDecode(t, tok, c)
			}
		})
	}
}

func TestConfig(t *testing.T) {
	var golden struct {
		Tokenizer map[string]any `json:"tokenizer"`
		Posts     map[string]any `json:"posts"`
		Cases     []struct {
			Post   string         `json:"post"`
			Config map[string]any `json:"config"`
			BOS    *int32         `json:"bos"`
			EOS    *int32         `json:"eos"`
			Runs   []struct {
				Text    string  `json:"text"`
				IDs     []int32 `json:"ids"`
				Special []int32 `json:"special"`
				Decode  string  `json:"decode"`
				Skip    string  `json:"skip"`
			} `json:"runs"`
		} `json:"cases"`
	}
	tokenizertest.ReadJSON(t, "config.json", &golden)
	withAlphabet(golden.Tokenizer)
	optional := func(id int32, ok bool) *int32 {
		if !ok {
			return nil
		}
		return &id
	}
	for _, c := range golden.Cases {
		config := toJSON(t, c.Config)
		t.Run(c.Post+string(config), func(t *testing.T) {
			golden.Tokenizer["post_processor"] = golden.Posts[c.Post]
			tok, err := Load(toJSON(t, golden.Tokenizer), config)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.BOS, optional(tok.BOS())); d != "" {
				t.Error("BOS", d)
			}
			if d := cmp.Diff(c.EOS, optional(tok.EOS())); d != "" {
				t.Error("EOS", d)
			}
			for _, r := range c.Runs {
				checkEncode(t, tok, encodeCase{Text: r.Text, IDs: r.IDs, Special: r.Special})
				checkDecode(t, tok, decodeCase{IDs: r.Special, Text: r.Decode, Skip: &r.Skip})
			}
		})
	}
}

// clean_up_tokenization_spaces removes spaces before English punctuation, but not for a BPE. The texts are transformers
// 5.23's results.
func TestCleanUp(t *testing.T) {
	const input = "do n't I 'm it 's we 've they 're ' x ' .. .  ."
	const cleaned = "don't I'm it's we've they're'x '...."
	for name, want := range map[string]string{"t5": cleaned, "unigram": cleaned, "gemma": input} {
		tok, err := Load(readFixture(t, name, "tokenizer.json"), []byte(`{"clean_up_tokenization_spaces":true}`))
		if err != nil {
			t.Fatal(err)
		}
		ids, err := tok.Encode(t.Context(), input, false)
		if err != nil {
			t.Fatal(err)
		}
		checkDecode(t, tok, decodeCase{IDs: ids, Text: want})
	}
}
