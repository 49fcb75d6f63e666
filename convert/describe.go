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

// describe finds out what the model can do, and who reads and writes its text: what the Modelfile says, else what the image
// says that this one is made from, else what the configuration and the chat template show.
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

// renderer is that of the family, but Qwen 3.8 has the classes of 3.5 and shows only in its template.
func renderer(family, template string) string {
	if family == "qwen3.5" && strings.Contains(template, "resolved_reasoning_effort") &&
		strings.Contains(template, "preserve_thinking") {
		return "qwen3.8"
	}
	return family
}

// toolsInTemplate finds the variable in which chat templates get the tools' descriptions: in Jinja, and in the Go templates
// of a TEMPLATE line.
var toolsInTemplate = regexp.MustCompile(`\{[%{][^%}]*(\btools\b|\.Tools\b)`)

// template is the text of all chat templates that come with the model: in files of their own, or in the tokenizer's
// configuration, where there may be several with names.
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
