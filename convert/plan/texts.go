package plan

import (
	"fmt"
	"slices"

	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/settings"
)

// addTexts replaces the image's texts by those of the options.
func (p *Plan) addTexts(opts Options) error {
	p.replace(manifest.KindTemplate, settings.TemplateName, opts.Template)
	p.replace(manifest.KindSystem, settings.SystemName, opts.System)
	if len(opts.Messages) == 0 {
		return nil
	}
	data, err := manifest.Marshal(opts.Messages)
	if err != nil {
		return fmt.Errorf("%s: %w", settings.MessagesName, err)
	}
	text := string(data)
	p.replace(manifest.KindMessages, settings.MessagesName, &text)
	return nil
}

// replace sets the image's text of a kind: nil keeps the existing one, "" removes it. A file with the same text keeps
// its name.
func (p *Plan) replace(kind manifest.Kind, name string, text *string) {
	if text == nil {
		return
	}
	same := slices.IndexFunc(p.Files, func(f source.File) bool { return f.Kind == kind && string(f.Data) == *text })
	if same >= 0 && *text != "" {
		keep := p.Files[same].Name
		p.Files = slices.DeleteFunc(p.Files, func(f source.File) bool { return f.Kind == kind && f.Name != keep })
		return
	}
	p.Files = slices.DeleteFunc(p.Files, func(f source.File) bool { return f.Kind == kind })
	if *text != "" {
		p.addFile(kind, p.freeName(name), []byte(*text))
	}
}

// has reports whether the source image has a text.
func (p *planner) has(kind manifest.Kind, text string) bool {
	return p.src.IsImage() &&
		slices.ContainsFunc(p.src.Files, func(f source.File) bool { return f.Kind == kind && string(f.Data) == text })
}
