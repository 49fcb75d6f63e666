package arch

import (
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch/config"
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

// Chat is the chat format of a family of models.
type Chat struct {
	Marks            []string // lower-case substrings of a class name or model_type; the longest that occurs decides
	Parser, Renderer string
	Thinks           bool // the parser knows a thinking block
}

// findChat returns the chat format with the longest mark in one of the names, or nil.
func findChat(names []string) (best *Chat) {
	var all []*Chat
	for _, a := range known {
		if a.Chat != nil {
			all = append(all, a.Chat)
		}
	}
	longest := 0
	for _, c := range all {
		for _, m := range c.Marks {
			if len(m) > longest && contained(m, names) {
				best, longest = c, len(m)
			}
		}
	}
	return best
}

// named reports whether one of the names has the type or an alias in it.
func (a Arch) named(names []string) bool {
	return contained(a.ModelType, names) ||
		slices.ContainsFunc(a.Aliases, func(alias string) bool { return contained(alias, names) })
}

func contained(mark string, names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, mark) })
}

// DetectFamily finds a model's chat format from its config.json. The model type need not be one that [Detect] knows.
func DetectFamily(data []byte) (Detected, error) {
	o, err := config.Parse(data)
	if err != nil {
		return Detected{}, err
	}
	names := append(o.Strings("architectures"), o.String("model_type", ""))
	for i, n := range names {
		names[i] = strings.ToLower(n)
	}
	d := Detected{Capabilities: []string{CapCompletion}}
	if c := findChat(names); c != nil {
		d.Parser, d.Renderer = c.Parser, c.Renderer
		d.Capabilities = append(d.Capabilities, CapTools)
		if c.Thinks {
			d.Capabilities = append(d.Capabilities, CapThinking)
		}
	}
	modelType := o.String("model_type", "")
	textOnly := slices.ContainsFunc(known, func(a Arch) bool {
		return a.TextOnly && a.named(names) || slices.Contains(a.Towers, modelType)
	})
	if hasVisionKeys(o) && !textOnly {
		d.Capabilities = append(d.Capabilities, CapVision)
	}
	return d, o.Failed()
}

func hasVisionKeys(o config.Object) bool {
	for _, key := range []string{"vision_config", "image_token_id", "vision_start_token_id", "vision_end_token_id"} {
		if o.Has(key) {
			return true
		}
	}
	return false
}
