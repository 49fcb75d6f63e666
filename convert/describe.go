package convert

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch"
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
	p.parser = cmp.Or(opts.Parser, inv.base.Parser, found.Parser)
	p.renderer = cmp.Or(opts.Renderer, inv.base.Renderer, found.Renderer)
	can := map[string]bool{}
	for _, c := range found.Capabilities {
		can[c] = true
	}
	template := inv.template()
	can[manifest.CapTools] = can[manifest.CapTools] || p.parser != "" || toolsInTemplate.MatchString(template)
	can[manifest.CapThinking] = can[manifest.CapThinking] || strings.Contains(template, "<think>")
	for _, c := range []string{manifest.CapCompletion, manifest.CapTools, manifest.CapThinking, manifest.CapVision} {
		if can[c] {
			p.capabilities = append(p.capabilities, c)
		}
	}
	return nil
}

// toolsInTemplate finds the variable in which chat templates get the tools' descriptions.
var toolsInTemplate = regexp.MustCompile(`\{[%{][^%}]*\btools\b`)

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
		var c struct {
			Template json.RawMessage `json:"chat_template"`
		}
		if json.Unmarshal(f.Data, &c) != nil {
			continue
		}
		var one string
		var many []struct {
			Template string `json:"template"`
		}
		if json.Unmarshal(c.Template, &one) == nil {
			texts = append(texts, one)
		} else if json.Unmarshal(c.Template, &many) == nil {
			for _, m := range many {
				texts = append(texts, m.Template)
			}
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, "\n")
}
