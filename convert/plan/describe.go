package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/settings"
)

// description is what programs need to know about a model to talk to it.
type description struct {
	parser, renderer string
	capabilities     []string
}

// Detect returns the parser and the renderer that an image would get if its source were a folder and the Modelfile had
// no lines for them.
func Detect(src *source.Source) (parser, renderer string, err error) {
	d, err := describe(src, settings.Record{}, Options{})
	return d.parser, d.renderer, err
}

// describe determines the model's capabilities, parser and renderer: from the Modelfile, else from the source image's
// record, else from the configuration and the chat template.
func describe(src *source.Source, record settings.Record, opts Options) (description, error) {
	var d description
	found, err := family(src)
	if err != nil {
		return d, src.Located(err)
	}
	t, err := templates(src, opts.Template)
	if err != nil {
		return d, err
	}
	text := rendered(t)
	shown, think := parse.Detect(text)
	d.parser = cmp.Or(opts.Parser, record.Parser, found.Parser, shown)
	d.renderer = cmp.Or(opts.Renderer, record.Renderer, renderer(found.Renderer, text))
	can := map[string]bool{}
	for _, c := range found.Capabilities {
		can[c] = true
	}
	reads, _ := parse.Abilities(d.parser)
	can[manifest.CapTools] = can[manifest.CapTools] || reads || d.parser != "" && !parse.Known(d.parser) ||
		readsTools(t)
	can[manifest.CapThinking] = can[manifest.CapThinking] || strings.Contains(text, "<think>") ||
		think != (parse.Tags{})
	if _, can[manifest.CapEmbedding] = src.File(source.ModulesName); !arch.HasHead(src.Model) {
		can = map[string]bool{manifest.CapEmbedding: true}
	}
	for _, c := range []string{manifest.CapCompletion, manifest.CapEmbedding, manifest.CapTools,
		manifest.CapThinking, manifest.CapVision} {
		if can[c] {
			d.capabilities = append(d.capabilities, c)
		}
	}
	return d, nil
}

// family finds the model's chat format from its configuration. A model that is read as another type than it declares
// has that type's vision only, and its own chat format.
func family(src *source.Source) (arch.Detected, error) {
	config, _ := src.File(source.ConfigName)
	found, err := arch.DetectFamily(config.Data)
	published := src.Published()
	if err != nil || published == nil {
		return found, err
	}
	own, err := arch.DetectFamily(published)
	if !slices.Contains(found.Capabilities, manifest.CapVision) {
		own.Capabilities = slices.DeleteFunc(own.Capabilities, func(c string) bool { return c == manifest.CapVision })
	}
	return own, err
}

// renderer returns the family's renderer. Qwen 3.8 shares its class names with 3.5 and differs only in its template.
func renderer(family, template string) string {
	if family == "qwen3.5" && strings.Contains(template, "resolved_reasoning_effort") &&
		strings.Contains(template, "preserve_thinking") {
		return "qwen3.8"
	}
	return family
}
