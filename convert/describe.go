package convert

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/manifest"
)

// describe determines the model's capabilities, parser and renderer: from the Modelfile, else from the source image,
// else from the configuration and the chat template.
func (inv *Inventory) describe(p *Plan, opts PlanOptions) error {
	config, _ := inv.file(configName)
	found, err := arch.DetectFamily(config.Data)
	if err != nil {
		return inv.inFolder(err)
	}
	template := inv.template()
	if opts.Template != nil && *opts.Template != "" {
		template = *opts.Template
	}
	shown, think := parse.Detect(template)
	p.parser = cmp.Or(opts.Parser, inv.base.Parser, found.Parser, shown)
	p.renderer = cmp.Or(opts.Renderer, inv.base.Renderer, renderer(found.Renderer, template))
	can := map[string]bool{}
	for _, c := range found.Capabilities {
		can[c] = true
	}
	reads, _ := parse.Abilities(p.parser)
	can[manifest.CapTools] = can[manifest.CapTools] || reads || p.parser != "" && !parse.Known(p.parser) ||
		toolsInTemplate.MatchString(template)
	can[manifest.CapThinking] = can[manifest.CapThinking] || strings.Contains(template, "<think>") ||
		think != (parse.Tags{})
	for _, c := range []string{manifest.CapCompletion, manifest.CapTools, manifest.CapThinking, manifest.CapVision} {
		if can[c] {
			p.capabilities = append(p.capabilities, c)
		}
	}
	return nil
}

// renderer returns the family's renderer. Qwen 3.8 shares its class names with 3.5 and differs only in its template.
func renderer(family, template string) string {
	if family == "qwen3.5" && strings.Contains(template, "resolved_reasoning_effort") &&
		strings.Contains(template, "preserve_thinking") {
		return "qwen3.8"
	}
	return family
}

// toolsInTemplate matches the use of the variable that holds the tool descriptions, in Jinja and in the Go templates of
// TEMPLATE lines.
var toolsInTemplate = regexp.MustCompile(`\{[%{][^%}]*(\btools\b|\.Tools\b)`)

// template returns the texts of all chat templates in the model: those in files of their own, and those in the
// tokenizer's configuration, which may have several named ones.
func (inv *Inventory) template() string {
	var texts []string
	for _, f := range inv.Files {
		if f.Kind == manifest.KindTemplate || f.Name == "chat_template.jinja" {
			texts = append(texts, string(f.Data))
		}
	}
	for _, name := range []string{"chat_template.json", tokenizerConfigName} {
		f, ok := inv.file(name)
		if !ok {
			continue
		}
		for _, t := range templates(f.Data) {
			texts = append(texts, t.Template)
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, "\n")
}
