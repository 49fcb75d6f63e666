package tokens

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/internal/limits/clip"
)

// tiktokenSuffix ends the name of a vocabulary of tiktoken: a line for each token, with its bytes in base64 and its
// rank.
// https://github.com/openai/tiktoken/blob/main/tiktoken/load.py
const tiktokenSuffix = ".tiktoken"

// isTiktoken reports whether a tokenizer.model is one, and not SentencePiece's, which begins with a byte that is no
// character of base64.
func isTiktoken(data []byte) bool {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	_, _, err := tiktokenLine(bytes.TrimSpace(line))
	return err == nil
}

func tiktokenLine(line []byte) (token []byte, rank int, err error) {
	text, number, ok := bytes.Cut(line, []byte(" "))
	if !ok {
		return nil, 0, errLine
	}
	if token, err = base64.StdEncoding.DecodeString(string(text)); err != nil || len(token) == 0 {
		return nil, 0, errLine
	}
	if rank, err = strconv.Atoi(string(bytes.TrimSpace(number))); err != nil || rank < 0 || rank > maxRank {
		return nil, 0, errLine
	}
	return token, rank, nil
}

var errLine = fmt.Errorf("want a token in base64, a space and its rank, at most %d", maxRank)

// readTiktoken reads a vocabulary. inOrder: the rank of a token is its place in the file, and a token that is there
// again is left out.
func readTiktoken(name string, data []byte, inOrder bool) (*ranked, error) {
	r := &ranked{name: name}
	for i, line := range bytes.Split(data, []byte("\n")) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		where := fmt.Sprintf("line %d", i+1)
		token, rank, err := tiktokenLine(line)
		if err != nil {
			return nil, damaged(name, "%s is %q, %v", where, clip.Text(string(line), 40), err)
		}
		if inOrder {
			if _, twice := r.ranks[string(token)]; twice {
				continue
			}
			rank = len(r.tokens)
		}
		if err := r.add(where, token, rank); err != nil {
			return nil, err
		}
	}
	if len(r.tokens) == 0 {
		return nil, damaged(name, "it is empty, %v", errLine)
	}
	return r, nil
}

// code is a publisher's tokenizer over a vocabulary of tiktoken, as its program in the checkpoint has it.
type code struct {
	pattern  string
	nfc      bool
	inOrder  bool
	special  []string
	first    int // id of the first special token; 0: the one after the vocabulary
	before   []string
	defaults []pair
}

// The patterns of tiktoken's vocabularies.
const (
	llama3Pattern = contractions + `[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*` + lines

	shortened   = `(?i:'s|'t|'re|'ve|'m|'ll|'d)?`
	kimiUpper   = `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]`
	kimiLower   = `[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]`
	kimiPattern = `[\p{Han}]+|[^\r\n\p{L}\p{N}]?` + kimiUpper + `*` + kimiLower + `+` + shortened +
		`|[^\r\n\p{L}\p{N}]?` + kimiUpper + `+` + kimiLower + `*` + shortened +
		`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*` + lines
)

// codes are the publishers' programs by the class that they define, with the name of its file.
var codes = map[string]code{
	// qwen.tiktoken, of tokenization_qwen.py
	"QWenTokenizer": {
		pattern: qwenPattern, nfc: true, first: 151643,
		special:  append([]string{endOfText, "<|im_start|>", "<|im_end|>"}, numbered("<|extra_%d|>", 205)...),
		defaults: []pair{{"eos_token", endOfText}},
	},
	// hy.tiktoken, of tokenization_hy.py
	"HYTokenizer": {
		pattern: qwenPattern, nfc: true, inOrder: true, first: 127957,
		special: append([]string{endOfText, "<|startoftext|>", "<|bos|>", "<|eos|>", "<|pad|>"},
			numbered("<|extra_%d|>", 205)...),
		defaults: []pair{{"eos_token", endOfText}},
	},
	// arcade100k.tiktoken, of tokenization_arcade100k.py
	"Arcade100kTokenizer": {
		pattern: qwenPattern, nfc: true, first: 100257,
		special: slices.Concat([]string{
			endOfText, "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<gh_stars>", "<filename>",
			"<issue_start>", "<issue_comment>", "<issue_closed>", "<jupyter_start>", "<jupyter_text>", "<jupyter_code>",
			"<jupyter_output>", "<empty_output>", "<commit_before>", "<commit_msg>", "<commit_after>", "<reponame>",
			"<|endofprompt|>", "<|im_start|>", "<|im_end|>", "<|pause|>",
		}, numbered("<|reg%d|>", 8), []string{"<|extra0|>"}),
		defaults: []pair{{"eos_token", endOfText}, {"pad_token", endOfText}},
	},
	// tokenizer.model, of tokenization_chatglm.py of GLM-4
	"ChatGLM4Tokenizer": {
		pattern: llama3Pattern, before: []string{"[gMASK]", "<sop>"},
		special: []string{
			endOfText, "[MASK]", "[gMASK]", "[sMASK]", "<sop>", "<eop>", "<|system|>", "<|user|>", "<|assistant|>",
			"<|observation|>", "<|begin_of_image|>", "<|end_of_image|>", "<|begin_of_video|>", "<|end_of_video|>",
		},
		defaults: []pair{{"eos_token", endOfText}},
	},
	// tiktoken.model, of tokenization_kimi.py and tokenization_moonshot.py
	"TikTokenTokenizer": {
		pattern: kimiPattern, special: numbered("<|reserved_token_%d|>", kimiReserved),
		defaults: []pair{{"bos_token", "[BOS]"}, {"eos_token", "[EOS]"}},
	},
}

// kimiReserved is the number of ids after the vocabulary that Kimi has for special tokens.
const kimiReserved = 256

// owners are the classes of files that name no class.
var owners = map[string]string{
	"qwen.tiktoken": "QWenTokenizer", "hy.tiktoken": "HYTokenizer", "arcade100k.tiktoken": "Arcade100kTokenizer",
	kimiName: "TikTokenTokenizer",
}

func numbered(format string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(format, i)
	}
	return out
}

// codeOf chooses the publisher's program of a file.
func (s *settings) codeOf(name string) (code, error) {
	class := s.class
	if s.generic() {
		class = owners[name]
	}
	if c, ok := codes[class]; ok {
		return c, nil
	}
	return code{}, fmt.Errorf("%w: %s is a vocabulary of tiktoken, whose pattern and special tokens are in the program "+
		"of its class %q, which is not supported (known: %s); %s", ErrUnknown, name, clip.Text(s.class, 40),
		strings.Join(slices.Sorted(maps.Keys(codes)), ", "), save)
}

func tiktokenFile(name string, f Folder, s *settings) (*Made, error) {
	c, err := s.codeOf(name)
	if err != nil {
		return nil, err
	}
	return c.made(name, f[name], s)
}

// kimi makes the tokenizer of tiktoken.model. added_tokens_decoder names some of its special tokens.
func kimi(f Folder, s *settings) (*Made, error) { return tiktokenFile(kimiName, f, s) }

// tiktokenModel makes the tokenizer of a tokenizer.model that is a vocabulary of tiktoken: GLM-4's, or with what
// transformers takes for one without a program (Llama 3's pattern and the tokens of added_tokens_decoder).
func tiktokenModel(f Folder, s *settings) (*Made, error) {
	c, ok := codes[s.class]
	switch {
	case ok:
	case s.modelType == "chatglm":
		c = codes["ChatGLM4Tokenizer"]
	default:
		c = code{pattern: llama3Pattern}
	}
	return c.made(modelName, f[modelName], s)
}

// made makes the tokenizer of a vocabulary.
func (c code) made(name string, data []byte, s *settings) (*Made, error) {
	ranks, err := readTiktoken(name, data, c.inOrder)
	if err != nil {
		return nil, err
	}
	first := c.first
	if first == 0 {
		first = len(ranks.tokens)
	}
	if first < len(ranks.tokens) {
		return nil, damaged(name, "it has the rank %d, but the special tokens start at %d", len(ranks.tokens)-1, first)
	}
	special, err := c.specials(first, s)
	if err != nil {
		return nil, err
	}
	model, err := ranks.model(0, special)
	if err != nil {
		return nil, err
	}
	var before []piece
	for _, text := range c.before {
		if at := slices.IndexFunc(special, func(t piece) bool { return t.text == text }); at >= 0 {
			before = append(before, special[at])
		}
	}
	made := &Made{From: name}
	if made.Settings, err = s.with(c.defaults); err != nil {
		return nil, err
	}
	w := words{steps: splits(c.pattern), nfc: c.nfc, special: special}
	made.Tokenizer, err = w.file(model, template(before, nil))
	return made, err
}

// specials returns the special tokens from the id first. The names in added_tokens_decoder take precedence, and tokens
// there beyond those of the program are added.
func (c code) specials(first int, s *settings) ([]piece, error) {
	names := map[int]string{}
	for i, text := range c.special {
		if strings.HasPrefix(text, "<|reserved_token_") {
			text = fmt.Sprintf("<|reserved_token_%d|>", first+i)
		}
		names[first+i] = text
	}
	var decoder map[string]struct{ Content string }
	if v, ok := s.keys["added_tokens_decoder"]; ok {
		if err := json.Unmarshal(v, &decoder); err != nil {
			return nil, damaged(settingsName, "added_tokens_decoder is %s, want an object of ids and tokens",
				clip.Text(string(v), 40))
		}
	}
	last := first - 1
	for key, token := range decoder {
		id, err := strconv.Atoi(key)
		if err != nil || id < 0 || id > maxRank || token.Content == "" {
			return nil, damaged(settingsName, "added_tokens_decoder has the key %q, want the id of a token with its content",
				clip.Text(key, 40))
		}
		if id >= first { // others are in the vocabulary
			names[id] = token.Content
		}
	}
	for id := range names {
		last = max(last, id)
	}
	var out []piece
	seen := map[string]int{}
	for id := first; id <= last; id++ {
		text, ok := names[id]
		if !ok {
			text = fmt.Sprintf("<|reserved_token_%d|>", id)
		}
		if other, twice := seen[text]; twice {
			return nil, damaged(settingsName, "the special tokens %d and %d are both %q", other, id, clip.Text(text, 40))
		}
		seen[text] = id
		out = append(out, piece{text, id})
	}
	return out, nil
}
