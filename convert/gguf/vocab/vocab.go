// Package vocab makes the tokenizer's files of a GGUF file's metadata: tokenizer.json or tokenizer.model,
// tokenizer_config.json, and generation_config.json.
//
// Contract:
//   - The result encodes as the tokenizer that the file was converted from, so far as the metadata has it. A
//     normalizer is not part of it and follows from the kind.
//   - A kind of tokenizer or of pre-tokenizer that is not known is an error that names it.
//
// Keys: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md#tokenizer
package vocab

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/convert/gguf"
	"github.com/ingotml/ingot/internal/limits/clip"
)

// ErrVocabulary reports metadata that does not describe a tokenizer.
var ErrVocabulary = errors.New("unusable tokenizer")

// File is a file of a checkpoint.
type File struct {
	Name string
	Data []byte
}

// prefix is the prefix of most keys.
const prefix = "tokenizer.ggml."

// maxQuoted bounds the characters of a text of a file that a message quotes.
const maxQuoted = 80

// Types of tokens.
const (
	typeNormal      = 1
	typeUnknown     = 2
	typeControl     = 3
	typeUserDefined = 4
	typeUnused      = 5
	typeByte        = 6
)

// vocabulary is the metadata.
type vocabulary struct {
	gguf.Metadata
	model, pre string
	tokens     []string
	types      []int64   // parallel to tokens; nil = all normal
	scores     []float64 // parallel to tokens, or nil
}

// Files returns the tokenizer's files: none if there is no tokenizer.
func Files(m gguf.Metadata) ([]File, error) {
	v := vocabulary{Metadata: m}
	var err error
	if v.model, err = m.Text(prefix + "model"); err != nil {
		return nil, err
	}
	if v.model == "" || v.model == "none" || v.model == "no_vocab" {
		return nil, nil
	}
	if err := v.read(); err != nil {
		return nil, err
	}
	var tokenizer File
	if err := v.check(); err != nil {
		return nil, err
	}
	switch v.model {
	case "gpt2", "gemma4":
		tokenizer.Name = "tokenizer.json"
		tokenizer.Data, err = v.bpe()
	case "llama", "t5":
		tokenizer.Name = "tokenizer.model"
		tokenizer.Data, err = v.sentencePiece()
	case "rwkv":
		tokenizer.Name, tokenizer.Data = RWKV, v.rwkv()
	default:
		return nil, fmt.Errorf("%w: %smodel = %q: want gpt2, llama, gemma4, rwkv or t5; others are not supported",
			ErrVocabulary, prefix, clip.Line(v.model, maxQuoted))
	}
	if err != nil {
		return nil, err
	}
	config, err := v.config()
	if err != nil {
		return nil, err
	}
	generation, err := v.generation()
	if err != nil {
		return nil, err
	}
	return []File{tokenizer, {"tokenizer_config.json", config}, {"generation_config.json", generation}}, nil
}

func (v *vocabulary) read() error {
	var err error
	if v.pre, err = v.Text(prefix + "pre"); err != nil {
		return err
	}
	if v.tokens, err = v.Texts(prefix + "tokens"); err != nil {
		return err
	}
	if len(v.tokens) == 0 {
		return fmt.Errorf("%w: %stokens is missing", ErrVocabulary, prefix)
	}
	if list, ok := v.Lookup(prefix + "token_type"); ok {
		if !list.IsArray || list.Len != len(v.tokens) {
			return fmt.Errorf("%w: %stoken_type is %v, but there are %d tokens", ErrVocabulary, prefix, list, len(v.tokens))
		}
		for i := range list.Len {
			n, ok := list.Int(i)
			if !ok {
				return fmt.Errorf("%w: %stoken_type is %v, want integers", ErrVocabulary, prefix, list)
			}
			v.types = append(v.types, n)
		}
	}
	if list, ok := v.Lookup(prefix + "scores"); ok {
		if !list.IsArray || list.Len != len(v.tokens) {
			return fmt.Errorf("%w: %sscores is %v, but there are %d tokens", ErrVocabulary, prefix, list, len(v.tokens))
		}
		for i := range list.Len {
			x, ok := list.Float(i)
			if !ok || x-x != 0 {
				return fmt.Errorf("%w: %sscores has %v at %d, want numbers", ErrVocabulary, prefix, x, i)
			}
			v.scores = append(v.scores, x)
		}
	}
	return nil
}

func (v *vocabulary) kind(i int) int64 {
	if v.types == nil {
		return typeNormal
	}
	return v.types[i]
}

// token returns the token that a key names by its id, if there is one, as [vocabulary.special] finds it.
func (v *vocabulary) token(name string) (text string, ok bool, err error) {
	id, err := v.special(name)
	if err != nil || id < 0 {
		return "", false, err
	}
	return v.tokens[id], true, nil
}

// special returns the id of the token that a key names; -1 if there is none. An id beyond the vocabulary is none, and
// [Notes] lists it. A vocabulary of SentencePiece has llama.cpp's defaults.
func (v *vocabulary) special(name string) (int, error) {
	key := prefix + name + "_token_id"
	if _, ok := v.Lookup(key); ok {
		n, err := v.Int(key)
		if err != nil || n >= 0 && n < int64(len(v.tokens)) {
			return int(n), err
		}
	}
	id, ok := map[string]int{"bos": 1, "eos": 2}[name]
	if ok && v.model == "llama" && id < len(v.tokens) && v.kind(id) == typeControl {
		return id, nil
	}
	return -1, nil
}

// config makes tokenizer_config.json.
func (v *vocabulary) config() ([]byte, error) {
	c := map[string]any{"clean_up_tokenization_spaces": false, "tokenizer_class": "PreTrainedTokenizerFast"}
	for _, t := range []struct{ name, key string }{
		{"bos", "bos_token"}, {"eos", "eos_token"}, {"unknown", "unk_token"}, {"seperator", "sep_token"},
		{"padding", "pad_token"}, {"cls", "cls_token"}, {"mask", "mask_token"},
	} {
		text, ok, err := v.token(t.name)
		if err != nil {
			return nil, err
		}
		if ok && v.model == "rwkv" && text == v.tokens[0] {
			text = RWKVEnd
		}
		if ok {
			c[t.key] = text
		}
	}
	bos, eos, err := v.adds()
	if err != nil {
		return nil, err
	}
	c["add_bos_token"], c["add_eos_token"] = bos, eos
	switch v.model {
	case "llama":
		// llama.cpp prepends a space after special tokens too.
		c["tokenizer_class"], c["legacy"] = "LlamaTokenizer", true
	case "t5":
		c["tokenizer_class"] = "T5Tokenizer"
	}
	if v.model == "llama" || v.model == "t5" {
		if c["add_prefix_space"], err = v.Bool(prefix+"add_space_prefix", true); err != nil {
			return nil, err
		}
	}
	if template, err := v.templates(); err != nil {
		return nil, err
	} else if template != nil {
		c["chat_template"] = template
	}
	return json.MarshalIndent(c, "", "  ")
}

// adds reports whether BOS and EOS are added to a text. Where the metadata does not say so, the kind decides, as in
// llama.cpp.
func (v *vocabulary) adds() (bos, eos bool, err error) {
	usual := v.model == "llama" || v.model == "gemma4" || pres[v.pre].bos
	if bos, err = v.Bool(prefix+"add_bos_token", usual); err != nil {
		return false, false, err
	}
	eos, err = v.Bool(prefix+"add_eos_token", v.model == "t5")
	return bos, eos, err
}

// ends are the texts of tokens that end a response in any model, as in llama.cpp.
var ends = []string{
	"<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<end_of_turn>",
	"<turn|>", "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>",
	"<end_of_utterance>", "<eos>",
}

// generation makes generation_config.json: the tokens that end a response, and the defaults of sampling.
func (v *vocabulary) generation() ([]byte, error) {
	c := map[string]any{}
	var ids []int64
	for _, name := range []string{"eos", "eot", "eom"} {
		if id, err := v.special(name); err != nil {
			return nil, err
		} else if id >= 0 {
			ids = append(ids, int64(id))
		}
	}
	for i, text := range v.tokens {
		if kind := v.kind(i); (kind == typeControl || kind == typeUserDefined) && slices.Contains(ends, text) {
			ids = append(ids, int64(i))
		}
	}
	if slices.Contains(v.tokens, "<|return|>") && slices.Contains(v.tokens, "<|call|>") {
		// gpt-oss ends each message of a response with <|end|>, and the response with one of these.
		ids = slices.DeleteFunc(ids, func(id int64) bool { return v.tokens[id] == "<|end|>" })
	}
	first := len(ids) > 0
	if first {
		eos := ids[0]
		slices.Sort(ids)
		ids = slices.Compact(ids)
		// The first is the one that the model was trained with.
		ids = append([]int64{eos}, slices.DeleteFunc(ids, func(id int64) bool { return id == eos })...)
		c["eos_token_id"] = ids
	}
	for key, to := range map[string]string{
		"temp": "temperature", "top_k": "top_k", "top_p": "top_p", "min_p": "min_p", "penalty_repeat": "repetition_penalty",
	} {
		if _, ok := v.Lookup("general.sampling." + key); !ok {
			continue
		}
		x, err := v.Float("general.sampling." + key)
		if err != nil {
			return nil, err
		}
		c[to] = short(x)
	}
	return json.MarshalIndent(c, "", "  ")
}

// short returns a number that is shown as the float32 that it was.
func short(x float64) any {
	b, err := json.Marshal(float32(x))
	if err != nil {
		return nil
	}
	return json.RawMessage(b)
}
