package vocab

import "slices"

// pre is a pre-tokenizer: how text is split before it is merged. The names are those of llama.cpp; the patterns are the
// ones of the published tokenizers that it recognizes by them.
// https://github.com/ggml-org/llama.cpp/blob/master/src/llama-vocab.cpp
type pre struct {
	steps        []any // of a tokenizer.json, before bytes are mapped to characters
	nfc          bool  // the published tokenizer normalizes
	ignoreMerges bool  // a word that is a token needs no merges
	bos          bool  // BOS is added unless the metadata says otherwise
	gpt2         bool  // GPT-2's own pattern splits last
}

const (
	llama3Pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|` +
		`\s*[\r\n]+|\s+(?!\S)|\s+`
	qwen2Pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|` +
		`\s*[\r\n]+|\s+(?!\S)|\s+`
	qwen35Pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|` +
		`\s*[\r\n]+|\s+(?!\S)|\s+`
	upperWord  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`
	lowerWord  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*`
	shortened  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)?`
	afterWords = `| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`

	tekkenPattern = upperWord + `|` + lowerWord + `|\p{N}` + afterWords
	gpt4oPattern  = upperWord + shortened + `|` + lowerWord + shortened + `|\p{N}{1,3}` + afterWords

	deepseekWords = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|" +
		" ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
	gpt2Pattern = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
)

// split is a step that makes each match of a pattern a word of its own.
func split(pattern string) any {
	return map[string]any{
		"type": "Split", "pattern": map[string]any{"Regex": pattern}, "behavior": "Isolated", "invert": false,
	}
}

var (
	digits = map[string]any{"type": "Digits", "individual_digits": true}

	gpt2Pre   = pre{gpt2: true}
	digitsPre = pre{steps: []any{digits}, gpt2: true}
	llama3Pre = pre{steps: []any{split(llama3Pattern)}, ignoreMerges: true, bos: true}
	plain3Pre = pre{steps: []any{split(llama3Pattern)}}
	qwen2Pre  = pre{steps: []any{split(qwen2Pattern)}, nfc: true}
	seekPre   = pre{steps: []any{split(`\p{N}{1,3}`), split("[一-龥぀-ゟ゠-ヿ]+"), split(deepseekWords)}}
	gpt4oPre  = pre{steps: []any{split(gpt4oPattern)}}
	oldPre    = pre{steps: []any{
		split(`[\p{P}\$\+<=>\^~\|]+`), split(gpt2Pattern), split(`\p{N}+`), split(`[0-9][0-9][0-9]`),
	}}
)

// pres are the known kinds by name. "" is a file from before there were kinds.
var pres = map[string]pre{
	"": oldPre, "default": oldPre,
	"llama3": llama3Pre, "llama-v3": llama3Pre, "llama-bpe": llama3Pre, "falcon3": llama3Pre, "pixtral": llama3Pre,
	"midm-2.0": llama3Pre, "lfm2": llama3Pre,
	"dbrx": plain3Pre, "smaug-bpe": plain3Pre, "chatglm-bpe": plain3Pre,
	"glm4": {steps: plain3Pre.steps, ignoreMerges: true}, "glm5": {steps: plain3Pre.steps, ignoreMerges: true},
	"qwen2": qwen2Pre, "deepseek-r1-qwen": qwen2Pre, "megrez": qwen2Pre,
	"qwen35":    {steps: []any{split(qwen35Pattern)}, nfc: true},
	"stablelm2": {steps: qwen2Pre.steps}, "hunyuan": {steps: qwen2Pre.steps}, "solar-open": {steps: qwen2Pre.steps},
	"deepseek-v3": seekPre, "hunyuan-dense": seekPre, "joyai-llm": seekPre,
	"tekken": {steps: []any{split(tekkenPattern)}, ignoreMerges: true, bos: true},
	"gpt-4o": gpt4oPre, "llama4": gpt4oPre, "kanana2": gpt4oPre, "minimax-m2": gpt4oPre,
	"gpt-2": gpt2Pre, "phi-2": gpt2Pre, "mpt": gpt2Pre, "olmo": gpt2Pre, "jais": gpt2Pre, "exaone4": gpt2Pre,
	"trillion": gpt2Pre, "granite-docling": gpt2Pre, "gigachat": gpt2Pre, "mellum": gpt2Pre, "a.x-4.0": gpt2Pre,
	"smollm": digitsPre, "starcoder": digitsPre, "refact": digitsPre, "command-r": digitsPre, "codeshell": digitsPre,
	"exaone": digitsPre, "minerva-7b": digitsPre, "mellum2": digitsPre,
}

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
