package tokens

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ingotml/ingot/internal/limits/clip"
	"github.com/ingotml/ingot/internal/limits/pyjson"
	"github.com/ingotml/ingot/tokenizer"
)

// class is a class of transformers that reads vocab.json and merges.txt.
// https://github.com/huggingface/transformers/tree/main/src/transformers/models, version 5.23
type class struct {
	words    words
	defaults []pair // what tokenizer_config.json need not have
	roberta  bool   // a text is between cls_token and sep_token
	types    []string
	forced   []string // types of models whose checkpoints may name a wrong class
}

// The patterns.
const (
	contractions = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|`
	lines        = `|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwenPattern  = contractions + `[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*` + lines
	qwen3Pattern = contractions + `[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*` + lines
)

const endOfText = "<|endoftext|>"

var classes = map[string]class{
	"GPT2Tokenizer": {
		words:    words{gpt2: true},
		defaults: []pair{{"bos_token", endOfText}, {"eos_token", endOfText}, {"unk_token", endOfText}},
		types: []string{
			"gpt2", "gpt_neo", "gptj", "codegen", "phi", "opt", "dbrx", "starcoder2", "jais2", "emu3", "hyperclovax_vision_v2",
		},
	},
	"CodeGenTokenizer": {
		words:    words{gpt2: true},
		defaults: []pair{{"bos_token", endOfText}, {"eos_token", endOfText}, {"unk_token", endOfText}},
	},
	"GPTNeoXTokenizer": {
		words: words{gpt2: true, nfc: true},
		defaults: []pair{
			{"bos_token", endOfText}, {"eos_token", endOfText}, {"unk_token", endOfText}, {"pad_token", "<|padding|>"},
		},
		types: []string{"gpt_neox", "falcon_mamba", "mamba", "mamba2", "mpt", "olmo", "olmoe", "rwkv", "xlstm"},
	},
	"RobertaTokenizer": {
		words: words{gpt2: true},
		defaults: []pair{
			{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}, {"sep_token", "</s>"},
			{"pad_token", "<pad>"}, {"cls_token", "<s>"}, {"mask_token", "<mask>"},
		},
		roberta: true,
		types:   []string{"roberta", "roberta-prelayernorm", "bart", "longformer"},
	},
	"CohereTokenizer": {
		words: words{
			gpt2: true, nfc: true, steps: []any{map[string]any{"type": "Digits", "individual_digits": true}},
		},
		defaults: []pair{
			{"bos_token", "<BOS_TOKEN>"}, {"eos_token", "<|END_OF_TURN_TOKEN|>"}, {"unk_token", "<UNK>"},
			{"sep_token", "<SEP>"}, {"pad_token", "<PAD>"}, {"cls_token", "<CLS>"}, {"mask_token", "<MASK_TOKEN>"},
		},
		types: []string{"cohere", "cohere2"},
	},
	"Qwen2Tokenizer": {
		words:    words{nfc: true, steps: splits(qwenPattern)},
		defaults: []pair{{"eos_token", endOfText}, {"unk_token", endOfText}, {"pad_token", endOfText}},
		types: []string{
			"qwen2_moe", "qwen2_vl", "qwen2_5_vl", "qwen2_audio", "qwen2_5_omni", "qwen3", "qwen3_moe", "qwen3_next",
			"qwen3_vl", "qwen3_vl_moe", "qwen3_omni_moe", "dots3_note",
		},
		forced: []string{"qwen2"},
	},
	"Qwen3_5Tokenizer": {
		words:    words{nfc: true, steps: splits(qwen3Pattern)},
		defaults: []pair{{"eos_token", endOfText}, {"unk_token", endOfText}, {"pad_token", endOfText}},
		types:    []string{"qwen3_5_text"},
		forced:   []string{"qwen3_5", "qwen3_5_moe", "qwen3_5_moe_text", "qwen4_exp"},
	},
}

// classOf chooses a class as transformers does: by tokenizer_class, or else by the model's type.
func classOf(s *settings) (class, error) {
	name := s.class
	if name == "BartTokenizer" {
		name = "RobertaTokenizer" // as transformers has it
	}
	for _, k := range slices.Sorted(maps.Keys(classes)) {
		if slices.Contains(classes[k].forced, s.modelType) {
			return classes[k], nil
		}
	}
	if c, ok := classes[name]; ok {
		return c, nil
	}
	if s.generic() {
		for _, k := range slices.Sorted(maps.Keys(classes)) {
			if slices.Contains(classes[k].types, s.modelType) {
				return classes[k], nil
			}
		}
		return class{}, fmt.Errorf("%w: %s and %s do not say how a text is split, and tokenizer_class is %q, want one of "+
			"%s; %s", ErrUnknown, vocabName, mergesName, s.class, strings.Join(slices.Sorted(maps.Keys(classes)), ", "), save)
	}
	return class{}, fmt.Errorf("%w: %s and %s are of the class %s, which is not supported (known: %s); %s",
		ErrUnknown, vocabName, mergesName, clip.Text(s.class, 40), strings.Join(slices.Sorted(maps.Keys(classes)), ", "),
		save)
}

// merged makes the tokenizer of vocab.json and merges.txt.
func merged(f Folder, s *settings) (*Made, error) {
	list, ok := f[mergesName]
	if !ok {
		return nil, fmt.Errorf("%w: %s is here, but not %s, without which it is not known how tokens are merged; %s",
			ErrUnknown, vocabName, mergesName, save)
	}
	c, err := classOf(s)
	if err != nil {
		return nil, err
	}
	merges, err := readMerges(f[vocabName], list)
	if err != nil {
		return nil, err
	}
	made := &Made{From: vocabName}
	if made.Settings, err = s.with(c.defaults); err != nil {
		return nil, err
	}
	model := map[string]any{
		"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": "", "end_of_word_suffix": "",
		"fuse_unk": false, "byte_fallback": false, "ignore_merges": false, "vocab": json.RawMessage(f[vocabName]),
		"merges": merges,
	}
	w := c.words
	w.prefix = s.flag("add_prefix_space")
	if made.Tokenizer, err = w.file(model, nil); err != nil {
		return nil, err
	}
	var before, after []piece
	names := []pair{}
	if c.roberta {
		names = []pair{{"cls_token", "before"}, {"sep_token", "after"}}
	} else {
		for _, p := range []pair{{"bos_token", "before"}, {"eos_token", "after"}} {
			if s.flag("add_" + p.key) {
				names = append(names, p)
			}
		}
	}
	if len(names) == 0 {
		return made, nil
	}
	special, err := s.special(made)
	if err != nil {
		return nil, err
	}
	for _, p := range names {
		if t, ok := special(p.key); !ok {
			continue
		} else if p.text == "before" {
			before = append(before, t)
		} else {
			after = append(after, t)
		}
	}
	made.Tokenizer, err = w.file(model, template(before, after))
	return made, err
}

// special returns a function that finds a named special token.
func (s *settings) special(made *Made) (func(key string) (piece, bool), error) {
	data := made.Settings
	if data == nil {
		data = s.data
	}
	all, err := tokenizer.Settings(data, func(name string) ([]byte, error) { return s.folder[name], nil })
	if err != nil {
		return nil, err
	}
	t, err := tokenizer.Load(made.Tokenizer, all)
	if err != nil {
		return nil, err
	}
	keys := map[string]json.RawMessage{}
	if err := pyjson.Unmarshal(all, &keys); err != nil {
		return nil, err
	}
	return func(key string) (piece, bool) {
		text := content(keys[key])
		id, ok := t.ID(text)
		return piece{text, int(id)}, ok && text != ""
	}, nil
}

// content returns the text of a token, which is a text or an object; "" if it is neither.
func content(v json.RawMessage) string {
	var token struct{ Content string }
	if json.Unmarshal(v, &token.Content) != nil {
		_ = json.Unmarshal(v, &token)
	}
	return token.Content
}

// readMerges reads merges.txt: a line for each merge, with two tokens and a space between them.
func readMerges(vocab, list []byte) ([]string, error) {
	var ids map[string]int
	if err := pyjson.Unmarshal(vocab, &ids); err != nil || len(ids) == 0 {
		return nil, damaged(vocabName, "it is %s, want an object of tokens and ids", clip.Text(string(vocab), 40))
	}
	merges := []string{}
	for i, line := range strings.Split(string(list), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if line == "" || strings.HasPrefix(line, "#version") {
			continue
		}
		left, right, ok := strings.Cut(line, " ")
		if !ok || left == "" || right == "" || strings.Contains(right, " ") {
			return nil, damaged(mergesName, "line %d is %q, want two tokens with a space between them", i+1,
				clip.Text(line, 40))
		}
		for _, part := range []string{left, right, left + right} {
			if _, ok := ids[part]; !ok {
				return nil, damaged(mergesName, "line %d is %q, but %q is not in %s", i+1, clip.Text(line, 40),
					clip.Text(part, 40), vocabName)
			}
		}
		merges = append(merges, line)
	}
	return merges, nil
}
