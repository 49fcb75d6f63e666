package tokens

import (
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/internal/limits/clip"
	"github.com/ingotml/ingot/internal/limits/pyjson"
)

// tekkenFile is Mistral's tekken.json.
// https://github.com/mistralai/mistral-common/blob/main/src/mistral_common/tokens/tokenizers/tekken.py
type tekkenFile struct {
	Config struct {
		Pattern string `json:"pattern"`
		Size    int    `json:"default_vocab_size"`
		Special int    `json:"default_num_special_tokens"`
		Version string `json:"version"`
	} `json:"config"`
	Vocab []struct {
		Rank  int    `json:"rank"`
		Bytes string `json:"token_bytes"`
	} `json:"vocab"`
	Special []struct {
		Rank int    `json:"rank"`
		Text string `json:"token_str"`
	} `json:"special_tokens"`
}

// tekkenSpecial are the special tokens of files that do not list them, by their ids.
var tekkenSpecial = []string{
	"<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]",
	"[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]",
	"[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]",
}

// tekken makes the tokenizer of tekken.json: special tokens come first, then the vocabulary as far as it is used.
func tekken(data []byte, s *settings) (*Made, error) {
	var f tekkenFile
	if err := pyjson.Unmarshal(data, &f); err != nil {
		return nil, damaged(tekkenName, "%v", err)
	}
	switch {
	case f.Config.Pattern == "":
		return nil, damaged(tekkenName, "config.pattern is missing, want the pattern of words")
	case len(f.Vocab) == 0:
		return nil, damaged(tekkenName, "vocab is missing, want a list of tokens")
	case f.Config.Special < 0 || f.Config.Size > len(f.Vocab)+f.Config.Special || f.Config.Size <= f.Config.Special:
		return nil, damaged(tekkenName, "config.default_vocab_size is %d and config.default_num_special_tokens %d, "+
			"but vocab has %d tokens", f.Config.Size, f.Config.Special, len(f.Vocab))
	}
	special, err := f.special()
	if err != nil {
		return nil, err
	}
	ranks := ranked{name: tekkenName}
	for i, v := range f.Vocab[:f.Config.Size-f.Config.Special] {
		where := fmt.Sprintf("vocab[%d]", i)
		token, err := base64.StdEncoding.DecodeString(v.Bytes)
		if err != nil || len(token) == 0 {
			return nil, damaged(tekkenName, "%s: token_bytes is %q, want base64", where, clip.Text(v.Bytes, 40))
		}
		if v.Rank != i {
			return nil, damaged(tekkenName, "%s: the rank is %d, want %d", where, v.Rank, i)
		}
		if err := ranks.add(where, token, i); err != nil {
			return nil, err
		}
	}
	model, err := ranks.model(len(special), special)
	if err != nil {
		return nil, err
	}
	named := []pair{{"tokenizer_class", "PreTrainedTokenizerFast"}}
	var before []piece
	for _, p := range []pair{{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}, {"pad_token", "<pad>"}} {
		at := slices.IndexFunc(special, func(t piece) bool { return t.text == p.text })
		if at < 0 {
			continue
		}
		named = append(named, p)
		if p.key == "bos_token" {
			before = special[at : at+1]
		}
	}
	made := &Made{From: tekkenName}
	if made.Settings, err = s.with(named); err != nil {
		return nil, err
	}
	w := words{steps: splits(f.Config.Pattern), special: special}
	made.Tokenizer, err = w.file(model, template(before, nil))
	return made, err
}

// special returns the special tokens in the order of their ids, with the names of those that the file does not list.
func (f *tekkenFile) special() ([]piece, error) {
	n := f.Config.Special
	texts := make([]string, n)
	listed := 0
	if f.Special == nil {
		for i, text := range tekkenSpecial {
			if i < n {
				texts[i] = text
			}
		}
		listed = min(n, len(tekkenSpecial))
	}
	for i, t := range f.Special {
		switch {
		case t.Text == "":
			return nil, damaged(tekkenName, "special_tokens[%d]: token_str is missing", i)
		case t.Rank < 0 || t.Rank >= n:
			return nil, damaged(tekkenName, "special_tokens[%d]: the rank is %d, but there are %d special tokens", i, t.Rank, n)
		case texts[t.Rank] != "":
			return nil, damaged(tekkenName, "special_tokens[%d]: two special tokens have the rank %d", i, t.Rank)
		}
		texts[t.Rank] = t.Text
		listed++
	}
	seen := map[string]int{}
	var out []piece
	for i, text := range texts {
		if text == "" {
			if i < listed {
				return nil, damaged(tekkenName, "special_tokens: no token has the rank %d", i)
			}
			text = fmt.Sprintf("<SPECIAL_%d>", i)
		}
		if other, twice := seen[text]; twice {
			return nil, damaged(tekkenName, "special_tokens: %d and %d are both %q", other, i, clip.Text(text, 40))
		}
		seen[text] = i
		out = append(out, piece{text, i})
	}
	return out, nil
}
