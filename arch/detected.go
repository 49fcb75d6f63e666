package arch

import (
	"slices"
	"strings"
)

// Capabilities of a model.
const (
	CapCompletion = "completion"
	CapTools      = "tools"
	CapThinking   = "thinking"
	CapVision     = "vision"
)

// Detected is what a configuration reveals about a model's chat format. It does not include what the chat template
// adds.
type Detected struct {
	Parser       string // of the model's output: tool calls and thinking; "" = unknown
	Renderer     string // of the model's input
	Capabilities []string
}

// family is a group of models with the same chat format.
type family struct {
	marks            []string // lower-case substrings of a class name or model_type
	parser, renderer string
	thinks           bool // the parser knows a thinking block
}

// families are tried in order, the more specific ones first.
var families = []family{
	{[]string{"glm4", "glm-4"}, "glm-4.7", "glm-4.7", true},
	{[]string{"deepseek"}, "deepseek3", "deepseek3", true},
	{[]string{"gemma4"}, "gemma4", "gemma4", true},
	{[]string{"qwen3_5", "qwen3next", "qwen3_next"}, "qwen3.5", "qwen3.5", true},
	{[]string{"qwen3"}, "qwen3", "qwen3-coder", true},
	{[]string{"nemotronh", "nemotron_h"}, "nemotron-3", "nemotron-3", true},
}

// thinkingMarks identify models that think, whatever their parser.
var thinkingMarks = []string{"glm4moe", "glm4_moe", "deepseek", "qwen3"}

// DetectFamily finds a model's chat format from its config.json. The model type need not be one that [Detect] knows.
func DetectFamily(config []byte) (Detected, error) {
	o, err := parseObject(config)
	if err != nil {
		return Detected{}, err
	}
	names := append(o.strs("architectures"), o.str("model_type", ""))
	for i, n := range names {
		names[i] = strings.ToLower(n)
	}
	marked := func(marks []string) bool {
		return slices.ContainsFunc(names, func(n string) bool {
			return slices.ContainsFunc(marks, func(m string) bool { return strings.Contains(n, m) })
		})
	}
	d := Detected{Capabilities: []string{CapCompletion}}
	thinks := marked(thinkingMarks)
	if i := slices.IndexFunc(families, func(f family) bool { return marked(f.marks) }); i >= 0 {
		d.Parser, d.Renderer = families[i].parser, families[i].renderer
		d.Capabilities = append(d.Capabilities, CapTools)
		thinks = thinks || families[i].thinks
	}
	if thinks {
		d.Capabilities = append(d.Capabilities, CapThinking)
	}
	if hasVisionKeys(o) && !marked(towerNotImported) {
		d.Capabilities = append(d.Capabilities, CapVision)
	}
	return d, o.failed()
}

// towerNotImported identifies model types whose vision tower is not imported: their images have no vision capability.
var towerNotImported = []string{"gemma3", "gemma4"}

func hasVisionKeys(o object) bool {
	for _, key := range []string{"vision_config", "image_token_id", "vision_start_token_id", "vision_end_token_id"} {
		if o.has(key) {
			return true
		}
	}
	return false
}
