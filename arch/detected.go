package arch

import (
	"slices"
	"strings"
)

// What a model can do.
const (
	CapCompletion = "completion"
	CapTools      = "tools"
	CapThinking   = "thinking"
	CapVision     = "vision"
)

// Detected is what a configuration tells of how to talk to a model. What the chat template adds is not known here.
type Detected struct {
	Parser       string // of what the model says: of tool calls and thinking; "" = none is known
	Renderer     string // of what it is told
	Capabilities []string
}

// family is a group of models that are talked to in one way.
type family struct {
	marks            []string // in lower case, in a class name or model_type
	parser, renderer string
	thinks           bool // the parser knows a thinking block
}

// families are in the order in which they are tried: the more specific ones first.
var families = []family{
	{[]string{"glm4", "glm-4"}, "glm-4.7", "glm-4.7", true},
	{[]string{"deepseek"}, "deepseek3", "deepseek3", true},
	{[]string{"gemma4"}, "gemma4", "gemma4", true},
	{[]string{"qwen3_5", "qwen3next", "qwen3_next"}, "qwen3.5", "qwen3.5", true},
	{[]string{"qwen3"}, "qwen3", "qwen3-coder", true},
	{[]string{"nemotronh", "nemotron_h"}, "nemotron-3", "nemotron-3", true},
}

// thinkers mark models that think, whatever their parser.
var thinkers = []string{"glm4moe", "glm4_moe", "deepseek", "qwen3"}

// DetectFamily reads how to talk to a model from its config.json, which need not be of a kind that [Detect] knows.
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
	thinks := marked(thinkers)
	if i := slices.IndexFunc(families, func(f family) bool { return marked(f.marks) }); i >= 0 {
		d.Parser, d.Renderer = families[i].parser, families[i].renderer
		d.Capabilities = append(d.Capabilities, CapTools)
		thinks = thinks || families[i].thinks
	}
	if thinks {
		d.Capabilities = append(d.Capabilities, CapThinking)
	}
	if seesPictures(o) && !marked(blind) {
		d.Capabilities = append(d.Capabilities, CapVision)
	}
	return d, o.failed()
}

// blind marks the kinds of models whose vision tower is not imported: an image of them sees nothing.
var blind = []string{"gemma3", "gemma4"}

func seesPictures(o object) bool {
	for _, key := range []string{"vision_config", "image_token_id", "vision_start_token_id", "vision_end_token_id"} {
		if o.has(key) {
			return true
		}
	}
	return false
}
