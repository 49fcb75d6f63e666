package vocab

import "slices"

// pre is a pre-tokenizer: how text is split before it is merged. The names are those of llama.cpp; the patterns are the
// ones of the published tokenizers that it recognizes by them, or, where it splits otherwise, its own.
// https://github.com/ggml-org/llama.cpp/blob/master/src/llama-vocab.cpp
type pre struct {
	steps        []any // of a tokenizer.json, before bytes are mapped to characters
	nfc          bool  // the published tokenizer normalizes
	ignoreMerges bool  // a word that is a token needs no merges
	bos          bool  // BOS is added unless the metadata says otherwise
	gpt2         bool  // GPT-2's own pattern splits last
	spaces       bool  // merges text whose spaces are replaced, as Gemma's, and not bytes
}

// split is a step that makes each match of a pattern a word of its own.
func split(pattern string) any {
	return map[string]any{
		"type": "Split", "pattern": map[string]any{"Regex": pattern}, "behavior": "Isolated", "invert": false,
	}
}

// splits are steps of several patterns.
func splits(patterns ...string) []any {
	var steps []any
	for _, p := range patterns {
		steps = append(steps, split(p))
	}
	return steps
}

var digits = map[string]any{"type": "Digits", "individual_digits": true}

// family is a pre-tokenizer with the names of its kinds.
type family struct {
	names []string
	pre
}

// families is the one table of kinds. Of families that split the same, the first is the one that an export names. "" is
// a file from before there were kinds.
var families = []family{
	{[]string{"", "default"}, pre{steps: splits(`[\p{P}\$\+<=>\^~\|]+`, gpt2Pattern, `\p{N}+`, `[0-9][0-9][0-9]`)}},
	{[]string{
		"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano",
	}, pre{steps: splits(llama3Pattern), ignoreMerges: true, bos: true}},
	{[]string{"dbrx", "smaug-bpe", "chatglm-bpe"}, pre{steps: splits(llama3Pattern)}},
	{[]string{"glm4", "glm5"}, pre{steps: splits(llama3Pattern), ignoreMerges: true}},
	{[]string{"qwen2", "deepseek-r1-qwen", "megrez", "kormo", "f2llmv2"}, pre{steps: splits(qwen2Pattern), nfc: true}},
	{[]string{"qwen35"}, pre{steps: splits(qwen35Pattern), nfc: true}},
	{[]string{"stablelm2", "hunyuan", "solar-open", "grok-2"}, pre{steps: splits(qwen2Pattern)}},
	{[]string{"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"},
		pre{steps: splits(`\p{N}{1,3}`, cjkWords, deepseekWords)}},
	{[]string{"tekken"}, pre{steps: splits(tekkenPattern), ignoreMerges: true, bos: true}},
	{[]string{"gpt-4o", "llama4", "kanana2", "minimax-m2", "talkie"}, pre{steps: splits(gpt4oPattern)}},
	{[]string{"granite-embed-multi-97m"}, pre{steps: splits(gpt4oPattern), ignoreMerges: true}},
	{[]string{
		"gpt-2", "phi-2", "mpt", "olmo", "jais", "exaone4", "trillion", "granite-docling", "gigachat", "mellum", "a.x-4.0",
		"jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "jina-v1-en", "jina-v2-code", "roberta-bpe", "modern-bert",
	}, pre{gpt2: true}},
	{[]string{
		"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2",
	}, pre{steps: []any{digits}, gpt2: true}},
	{[]string{"deepseek-llm"},
		pre{steps: splits(`[\r\n]`, deepseekLetters, deepseekMarks, `\s+$`, deepseekHan, `\p{N}+`)}},
	{[]string{"deepseek-coder"}, pre{steps: splits(`[\r\n]`, `\s?\p{L}+`, `\s?\p{P}+`, deepseekHan, `\p{N}`)}},
	{[]string{"youtu"}, pre{steps: splits(youtuScripts, upperWord+shortened+`|`+lowerWord+shortened+`|\p{N}`+afterWords),
		ignoreMerges: true}},
	{[]string{"falcon"}, pre{steps: splits("[\\p{P}\\$\\+<=>\\^~\\|`]+", gpt2Pattern, `[0-9][0-9][0-9]`)}},
	{[]string{"jais-2"}, pre{steps: splits(jais2Pattern)}},
	{[]string{"poro-chat", "bloom", "gpt3-finnish"}, pre{steps: splits(bloomPattern)}},
	{[]string{"viking"}, pre{steps: splits(bloomPattern, `\p{N}`)}},
	{[]string{"exaone-moe"}, pre{steps: splits(exaoneMoePattern)}},
	{[]string{"chameleon"}, pre{steps: splits(`<sentinel:[0-9]+>`, `(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z`,
		`([\t\n]|    |  )`, `\p{N}`, "[\\p{P}!-/:-@\\[-`{-~]", gpt2Pattern), bos: true}},
	{[]string{"tiny_aya", "cohere2moe"}, pre{steps: splits(`\d{1,3}(?=(?:\d{3})*\b)`, gpt4oPattern)}},
	{[]string{"superbpe"}, pre{steps: splits(`\p{N}+`, `(?=(\d{3})+(?!\d))`)}},
	{[]string{"bailingmoe", "bailingmoe2", "llada-moe"}, pre{steps: splits(bailingPattern)}},
	{[]string{"seed-coder"}, pre{steps: splits(seedPattern)}},
	{[]string{"ufakzeka"}, pre{steps: splits(qwen2Words)}},
	{[]string{"kimi-k2"}, pre{steps: splits(kimiPattern)}},
	{[]string{"afmoe"}, pre{steps: splits(`\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))`, afmoeScripts, deepseekWords)}},
	{[]string{"laguna"}, pre{steps: splits(`[^\n]+|[\n]+`, qwen2Pattern)}},
	{[]string{"minicpm5"}, pre{steps: splits(`\p{N}{1,3}`, contractions+minicpmWords), ignoreMerges: true}},
	{[]string{"gemma4", "granite-embed-multi-311m", "sarvam-moe"}, pre{spaces: true}},
}

// pres are the kinds by name.
var pres = func() map[string]pre {
	all := map[string]pre{}
	for _, f := range families {
		for _, name := range f.names {
			all[name] = f.pre
		}
	}
	return all
}()

// Kinds lists the known kinds of pre-tokenizers.
func Kinds() []string {
	var list []string
	for name := range pres {
		if name != "" {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}
