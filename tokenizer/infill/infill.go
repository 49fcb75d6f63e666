// Package infill makes prompts that ask a model to fill a gap in a text, from the tokens that its vocabulary has for
// that.
//
// Contract:
//   - A [Format] is found by tokens, not by the model's name, because fine-tuned models keep the vocabulary of the
//     model that they are made from. Whether the model was trained on such prompts cannot be seen.
//   - The parts of a prompt are encoded one by one, as the references of the families do.
//   - A Format is immutable and safe for concurrent use.
package infill

import (
	"context"
	"slices"
	"strings"

	"github.com/ingotml/ingot/tokenizer"
)

// family describes the tokens of a family of vocabularies.
type family struct {
	prefix, suffix string // before the text before the gap, and after it
	middle         string // where the model continues; "": nothing is there
	suffixFirst    bool   // the text after the gap comes first
	ends           []string
}

// families lists the known ones. The first whose tokens are in a vocabulary is used.
var families = []family{
	// Qwen2.5-Coder, https://github.com/QwenLM/Qwen3-Coder; CodeGemma, https://ai.google.dev/gemma/docs/codegemma;
	// Granite 4, https://huggingface.co/ibm-granite
	{prefix: "<|fim_prefix|>", suffix: "<|fim_suffix|>", middle: "<|fim_middle|>",
		ends: []string{"<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<|file_separator|>", "<|filename|>",
			"<|reponame|>"}},
	// StarCoder, https://arxiv.org/abs/2305.06161; Granite Code, Refact, Stable Code
	{prefix: "<fim_prefix>", suffix: "<fim_suffix>", middle: "<fim_middle>",
		ends: []string{"<fim_pad>", "<file_sep>", "<repo_name>", "<reponame>", "<filename>", "<gh_stars>"}},
	// SantaCoder, https://arxiv.org/abs/2301.03988
	{prefix: "<fim-prefix>", suffix: "<fim-suffix>", middle: "<fim-middle>", ends: []string{"<fim-pad>"}},
	// DeepSeek-Coder, https://github.com/deepseek-ai/DeepSeek-Coder
	{prefix: "<｜fim▁begin｜>", suffix: "<｜fim▁hole｜>", middle: "<｜fim▁end｜>", ends: []string{"<|EOT|>"}},
	// Code Llama, https://github.com/meta-llama/codellama
	{prefix: "▁<PRE>", suffix: "▁<SUF>", middle: "▁<MID>", ends: []string{"▁<EOT>"}},
	// Seed-Coder, https://arxiv.org/abs/2506.03524
	{prefix: "<[fim-prefix]>", suffix: "<[fim-suffix]>", middle: "<[fim-middle]>", suffixFirst: true},
	// GLM-4.5, https://github.com/zai-org/GLM-4.5
	{prefix: "<|code_prefix|>", suffix: "<|code_suffix|>", middle: "<|code_middle|>", ends: []string{"<|user|>",
		"<|observation|>"}},
	// Codestral, https://docs.mistral.ai/capabilities/code_generation. Other models of Mistral have the tokens, too.
	{prefix: "[PREFIX]", suffix: "[SUFFIX]", suffixFirst: true},
}

// commonEnds end a text in every family that has them, as they begin another document or a message.
var commonEnds = []string{"<|endoftext|>", "<|end_of_text|>", "<|im_start|>", "<|im_end|>"}

// Format says how a vocabulary marks the parts of a text with a gap.
type Format struct {
	tok                    *tokenizer.Tokenizer
	prefix, suffix, middle []int32 // one id; none if there is no such token
	suffixFirst            bool
	ends                   []int32
}

// Of returns the format of a vocabulary, or nil if it has no tokens for one. A nil tokenizer has none.
func Of(t *tokenizer.Tokenizer) *Format {
	if t == nil {
		return nil
	}
	for _, f := range families {
		if found := f.in(t); found != nil {
			return found
		}
	}
	return nil
}

// in returns the family's format if a vocabulary has its tokens, else nil.
func (f family) in(t *tokenizer.Tokenizer) *Format {
	marks := [][]int32{nil, nil, nil}
	var ends []int32
	for i, mark := range []string{f.prefix, f.suffix, f.middle} {
		if mark == "" {
			continue
		}
		id, ok := t.ID(mark)
		if !ok {
			return nil
		}
		marks[i] = []int32{id}
		ends = append(ends, id)
	}
	for _, name := range slices.Concat(f.ends, commonEnds) {
		if id, ok := t.ID(name); ok {
			ends = append(ends, id)
		}
	}
	return &Format{tok: t, prefix: marks[0], suffix: marks[1], middle: marks[2], suffixFirst: f.suffixFirst, ends: ends}
}

// Ends returns the tokens that end the text in the gap, in addition to the model's. The caller must not change them.
func (f *Format) Ends() []int32 { return f.ends }

// Encode returns the prompt for the gap between two texts, with what the tokenizer adds around a text. A prompt of more
// than most tokens gets less of both texts: the end of the first one and the beginning of the second one.
func (f *Format) Encode(ctx context.Context, prefix, suffix string, most int) ([]int32, error) {
	ids, err := f.tok.Encode(ctx, prefix, false)
	if err != nil {
		return nil, err
	}
	return f.EncodeAfter(ctx, ids, suffix, most)
}

// EncodeAfter is Encode for a text before the gap that is token ids.
func (f *Format) EncodeAfter(ctx context.Context, prefix []int32, suffix string, most int) ([]int32, error) {
	after, err := f.encodeInner(ctx, suffix)
	if err != nil {
		return nil, err
	}
	around, err := f.tok.Encode(ctx, "", true)
	if err != nil {
		return nil, err
	}
	if eos, ok := f.tok.EOS(); ok && len(around) > 0 && around[len(around)-1] == eos {
		around = around[:len(around)-1] // the model continues the prompt
	}
	prefix = trimStart(prefix, around)
	fixed := len(around) + len(f.prefix) + len(f.suffix) + len(f.middle)
	prefix, after = shorten(prefix, after, max(most-fixed, 0))
	before := slices.Concat(f.prefix, prefix)
	after = slices.Concat(f.suffix, after)
	if f.suffixFirst {
		before, after = after, before
	}
	return slices.Concat(around, before, after, f.middle), nil
}

// shorten returns the tokens of two texts next to the gap; most bounds their number. A quarter is of the second text,
// unless the first one needs less than the rest.
func shorten(before, after []int32, most int) (left, right []int32) {
	if len(before)+len(after) <= most {
		return before, after
	}
	n := min(len(after), max(most/4, most-len(before)))
	return before[max(len(before)-(most-n), 0):], after[:n]
}

// trimStart removes what the tokenizer adds before a text from ids that begin with it.
func trimStart(ids, added []int32) []int32 {
	if len(added) > 0 && len(ids) >= len(added) && slices.Equal(ids[:len(added)], added) {
		return ids[len(added):]
	}
	return ids
}

// aWord is encoded as one unit that joins nothing before or after it.
const aWord = "☺"

// encodeInner encodes a text inside of a prompt. SentencePiece puts a space before a text, which must not be added
// there.
func (f *Format) encodeInner(ctx context.Context, text string) ([]int32, error) {
	if text == "" {
		return nil, nil
	}
	word, err := f.tok.Encode(ctx, aWord, false)
	if err != nil {
		return nil, err
	}
	if first, ok := f.tok.Token(word[0]); !ok || !strings.HasPrefix(first, "▁") {
		return f.tok.Encode(ctx, text, false)
	}
	ids, err := f.tok.Encode(ctx, aWord+text, false)
	if err != nil || len(ids) < len(word) || !slices.Equal(ids[:len(word)], word) {
		return f.tok.Encode(ctx, text, false)
	}
	return ids[len(word):], nil
}
