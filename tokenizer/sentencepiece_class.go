package tokenizer

import (
	"fmt"
	"strings"

	"github.com/ingotml/ingot/tokenizer/jsonfile"
)

// spClass is what a class of tokenizers does with a tokenizer.model.
type spClass struct {
	bos, eos bool // are added unless add_bos_token and add_eos_token say otherwise
	legacy   bool // a space is prepended to every text between special tokens, unless "legacy" says otherwise
	placed   bool // added_tokens_decoder has the ids of its tokens, which replace pieces and are matched in plain text
	special  []string
	before   []string // special tokens before a text
}

// spClasses are the classes by the start of their name: those of transformers, and the programs that checkpoints have
// beside their tokenizer.model. Other classes add nothing.
var spClasses = []struct {
	prefix string
	class  spClass
}{
	{"Llama", spClass{bos: true}},
	{"CodeLlama", spClass{bos: true}},
	{"Gemma", spClass{bos: true}},
	{"T5", spClass{eos: true}},
	{"Baichuan", spClass{bos: true, legacy: true, placed: true}},
	{"BaiChuan", spClass{bos: true, legacy: true, placed: true}},
	{"InternLM3", spClass{bos: true, placed: true}},
	{"InternLM", spClass{bos: true, legacy: true, placed: true}}, // and InternLM2
	{"ChatGLMTokenizer", spClass{ // ChatGLM2 and ChatGLM3; GLM-4 has a class and a vocabulary of its own
		legacy: true, placed: true, before: []string{"[gMASK]", "sop"},
		special: []string{
			"[MASK]", "[gMASK]", "[sMASK]", "sop", "eop", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>",
		},
	}},
}

func spClassOf(name string) spClass {
	for _, c := range spClasses {
		if strings.HasPrefix(name, c.prefix) {
			return c.class
		}
	}
	return spClass{}
}

// place adds the special tokens of a class behind the vocabulary, and those of added_tokens_decoder at their ids.
func (t *Tokenizer) place(c spClass, decoder *jsonfile.Node) error {
	for i, text := range c.special {
		t.added.put(int32(t.model.Size()+i), addedToken{content: text, special: true})
	}
	if !c.placed {
		return nil
	}
	read := configuration{described: map[string]addedToken{}}
	if err := read.readDecoder(decoder); err != nil {
		return fmt.Errorf("added_tokens_decoder: %w", err)
	}
	for i, token := range read.decoder {
		if token.content != "" {
			t.added.put(read.ids[i], token)
		}
	}
	return nil
}
