package tokens

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/tokenizer"
)

// layouts is testdata/layouts.json. A file that is a text names a shared one.
type layouts struct {
	Shared map[string]string `json:"shared"`
	Texts  []string          `json:"texts"`
	Cases  []layout          `json:"cases"`
}

type layout struct {
	Name    string                     `json:"name"`
	Files   map[string]json.RawMessage `json:"files"`
	IDs     [][]int32                  `json:"ids"`     // of each text; null: the library does not say
	Special [][]int32                  `json:"special"` // with what is put around a text; null: nothing is
	BOS     *int32                     `json:"bos"`
	EOS     *int32                     `json:"eos"`
	Tokens  map[string]int32           `json:"tokens"`
}

func readLayouts(t *testing.T) layouts {
	data, err := os.ReadFile("testdata/layouts.json")
	if err != nil {
		t.Fatal(err)
	}
	var l layouts
	if err := json.Unmarshal(data, &l); err != nil || len(l.Cases) < 20 || len(l.Texts) < 70 {
		t.Fatalf("%d cases, %d texts: %v", len(l.Cases), len(l.Texts), err)
	}
	return l
}

// folder returns the files of a case.
func (l layouts) folder(t *testing.T, name string) Folder {
	at := slices.IndexFunc(l.Cases, func(c layout) bool { return c.Name == name })
	if at < 0 {
		t.Fatalf("there is no case %q", name)
	}
	f := Folder{}
	for file, data := range l.Cases[at].Files {
		var shared string
		if json.Unmarshal(data, &shared) == nil {
			data = []byte(l.Shared[shared])
		}
		f[file] = data
	}
	return f
}

// load returns the tokenizer of a folder as an image has it.
func load(t *testing.T, f Folder) *tokenizer.Tokenizer {
	made, err := Make(f)
	if err != nil || made == nil {
		t.Fatalf("made %v: %v", made, err)
	}
	settings := f[settingsName]
	if made.Settings != nil {
		settings = made.Settings
	}
	settings, err = tokenizer.Settings(settings, func(name string) ([]byte, error) { return f[name], nil })
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Load(made.Tokenizer, settings)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// Each layout gives the ids of its publisher's library.
func TestLayouts(t *testing.T) {
	l := readLayouts(t)
	for _, c := range l.Cases {
		t.Run(c.Name, func(t *testing.T) {
			tok := load(t, l.folder(t, c.Name))
			compared := 0
			for i, text := range l.Texts {
				if c.IDs[i] == nil {
					continue
				}
				compared++
				around := c.IDs[i]
				if c.Special != nil {
					around = c.Special[i]
				}
				for special, want := range map[bool][]int32{false: c.IDs[i], true: around} {
					got, err := tok.Encode(t.Context(), text, special)
					if err != nil || !slices.Equal(got, want) {
						t.Errorf("%q, special %v: %v (%v), want %v", text, special, got, err, want)
					}
				}
				back, err := tok.Decode(c.IDs[i], false)
				if err != nil || slices.Contains([]string{"gpt2", "kimi", "tekken v3", "glm4"}, c.Name) && back != text {
					t.Errorf("%q comes back as %q (%v)", text, back, err)
				}
			}
			if compared < 60 {
				t.Errorf("%d texts were compared", compared)
			}
			if c.EOS != nil {
				if id, ok := tok.EOS(); !ok || id != *c.EOS {
					t.Errorf("EOS is %d, %v, want %d", id, ok, *c.EOS)
				}
				if id, ok := tok.BOS(); ok != (*c.BOS >= 0) || ok && id != *c.BOS {
					t.Errorf("BOS is %d, %v, want %d", id, ok, *c.BOS)
				}
			}
			for text, want := range c.Tokens {
				if id, ok := tok.ID(text); !ok || id != want {
					t.Errorf("%q is the token %d, %v, want %d", text, id, ok, want)
				}
			}
		})
	}
}

// A folder with a tokenizer.json or with SentencePiece's tokenizer.model needs nothing, and one without a tokenizer
// has none.
func TestNothingToMake(t *testing.T) {
	for name, f := range map[string]Folder{
		"tokenizer.json": {tokenizerName: []byte("{}"), tekkenName: []byte("{}"), "qwen.tiktoken": []byte("x")},
		"sentencepiece":  {modelName: []byte("\n\x0e\n\x05<unk>\x15\x00\x00\x00\x00\x18\x02")},
		"no tokenizer":   {configName: []byte(`{"model_type": "llama"}`)},
		"merges alone":   {mergesName: []byte("a b\n")},
	} {
		if made, err := Make(f); made != nil || err != nil {
			t.Errorf("%s: %v, %v", name, made, err)
		}
	}
}

// The class of a vocabulary of tiktoken may be named by auto_map alone, or by the name of the file.
func TestClassOfTiktoken(t *testing.T) {
	l := readLayouts(t)
	f := l.folder(t, "qwen")
	want := load(t, f)
	auto := `{"auto_map": {"AutoTokenizer": ["tokenization_qwen.QWenTokenizer", null]}}`
	for settings, name := range map[string]string{auto: "other.tiktoken", `{}`: "qwen.tiktoken", "": "qwen.tiktoken"} {
		g := Folder{name: f["qwen.tiktoken"]}
		if settings != "" {
			g[settingsName] = []byte(settings)
		}
		tok := load(t, g)
		for _, text := range l.Texts {
			a, _ := want.Encode(t.Context(), text, true)
			if b, err := tok.Encode(t.Context(), text, true); err != nil || !slices.Equal(a, b) {
				t.Fatalf("%s, %q: %v (%v), want %v", name, text, b, err, a)
			}
		}
	}
}

// What is damaged is an error that says where and what to do; what is not known how to read is ErrUnknown.
func TestBadLayouts(t *testing.T) {
	l := readLayouts(t)
	for _, c := range []struct {
		name, file, from, to string
		unknown              bool
		want                 []string
	}{
		{"gpt2", mergesName, "\n", "\na b c\n", false, []string{"merges.txt: line 2", `"a b c"`, "download"}},
		{"gpt2", mergesName, "\n", "\nzz q\n", false, []string{"merges.txt: line 2", `"zz"`, "not in vocab.json"}},
		{"gpt2", mergesName, "", "", true, []string{"merges.txt", "save_pretrained"}},
		{"gpt2", vocabName, "{", "[{", false, []string{"vocab.json", "want an object", "download"}},
		{"gpt2", vocabName, `": 7`, `": "7`, false, []string{"vocab.json"}},
		{"gpt2", settingsName, "GPT2Tokenizer", "XYTokenizer", true,
			[]string{"XYTokenizer", "GPT2Tokenizer", "save_pretrained"}},
		{"gpt2", settingsName, "{", "[{", false, []string{"tokenizer_config.json", "want an object"}},
		{"gpt2 without settings", configName, "gpt2", "llama", true, []string{"tokenizer_class", "save_pretrained"}},
		{"tekken v13", tekkenName, "{", "{}{", false, []string{"tekken.json", "download"}},
		{"tekken v13", tekkenName, `"pattern"`, `"p"`, false, []string{"config.pattern is missing"}},
		{"tekken v13", tekkenName, `"vocab"`, `"v"`, false, []string{"vocab is missing"}},
		{"tekken v13", tekkenName, `"default_vocab_size":`, `"default_vocab_size":9`, false, []string{"default_vocab_size"}},
		{"tekken v13", tekkenName, `"AA=="`, `"A"`, false, []string{"vocab[0]", "base64"}},
		{"tekken v13", tekkenName, `"AA=="`, `"AQ=="`, false, []string{"vocab[1]", "0 and 1 are the same"}},
		{"tekken v13", tekkenName, `"rank":1,`, `"rank":2,`, false, []string{"vocab[1]", "the rank is 2, want 1"}},
		{"tekken v13", tekkenName, `"[INST]"`, `"<s>"`, false, []string{"1 and 3 are both"}},
		{"tekken v13", tekkenName, `"[INST]"`, `"e"`, true, []string{`"e"`, "ordinary token"}},
		{"kimi", kimiName, " 5\n", "\n", false, []string{"tiktoken.model: line 6", "want a token in base64"}},
		{"kimi", kimiName, " 5\n", " 4\n", false, []string{"line 6", "two tokens have the rank 4"}},
		{"kimi", kimiName, "IQ== 0\n", "\n", false, []string{"no token is the byte 0x21"}},
		{"kimi", kimiName, " 5\n", " 99999999999\n", false, []string{"line 6"}},
		{"kimi", settingsName, "TikTokenTokenizer", "OtherTokenizer", true, []string{"OtherTokenizer", "save_pretrained"}},
		{"kimi", settingsName, "<named>", "[BOS]", false, []string{"are both", "[BOS]"}},
		{"qwen", "qwen.tiktoken", "\n", "\neA==\n", false, []string{"qwen.tiktoken: line 2"}},
		{"qwen", "qwen.tiktoken", " 5\n", " 200000\n", false, []string{"200000", "151643"}},
	} {
		f := l.folder(t, c.name)
		switch before := string(f[c.file]); {
		case c.from == "":
			delete(f, c.file)
		case !strings.Contains(before, c.from):
			t.Errorf("%s: %s does not have %q", c.name, c.file, c.from)
		default:
			f[c.file] = []byte(strings.Replace(before, c.from, c.to, 1))
		}
		made, err := Make(f)
		if err == nil || made != nil || errors.Is(err, ErrUnknown) != c.unknown {
			t.Errorf("%s, %q as %q: %v", c.name, c.from, c.to, err)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s, %q as %q: %q lacks %q", c.name, c.from, c.to, err, part)
			}
		}
	}
}
