package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/manifest"
)

// checkTemplates warns about unusable chat templates in the checkpoint. The model still runs without one. If there is a
// TEMPLATE line, it replaces them, and parseRequest has checked it.
func (p *planner) checkTemplates(ctx context.Context) (warnings []string) {
	if p.opts.Template != nil && *p.opts.Template != "" {
		return nil
	}
	check := func(what, text string) {
		if _, err := chat.Parse(ctx, text); err != nil {
			warnings = append(warnings, fmt.Sprintf("%s: the chat template cannot be used: %v", what, err))
		}
	}
	for _, f := range p.src.Files {
		path := f.Name
		if !p.src.IsImage() {
			path = filepath.Join(p.src.From, f.Name)
		}
		switch {
		case f.Kind == manifest.KindTemplate:
			if p.opts.Template == nil {
				check(path, string(f.Data))
			}
		case f.Name == "chat_template.jinja":
			check(path, string(f.Data))
		case f.Name == "chat_template.json" || f.Name == tokenizerConfigName:
			for _, t := range templates(f.Data) {
				what := path
				if t.Name != "default" {
					what = fmt.Sprintf("%s, template %q", path, t.Name)
				}
				check(what, t.Template)
			}
		}
	}
	return warnings
}

// template returns the texts of all chat templates in the model: those in files of their own, and those in the
// tokenizer's configuration, which may have several named ones.
func template(src *source.Source) string {
	var texts []string
	for _, f := range src.Files {
		if f.Kind == manifest.KindTemplate || f.Name == "chat_template.jinja" {
			texts = append(texts, string(f.Data))
		}
	}
	for _, name := range []string{"chat_template.json", tokenizerConfigName} {
		f, ok := src.File(name)
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

// namedTemplate is a chat template in a tokenizer's configuration.
type namedTemplate struct {
	Name     string `json:"name"`
	Template string `json:"template"`
}

// templates returns the chat templates in a tokenizer's configuration. A single one is named default.
func templates(config []byte) []namedTemplate {
	var c struct {
		Template json.RawMessage `json:"chat_template"`
	}
	if json.Unmarshal(config, &c) != nil {
		return nil
	}
	var one string
	var many []namedTemplate
	switch {
	case json.Unmarshal(c.Template, &one) == nil:
		return []namedTemplate{{"default", one}}
	case json.Unmarshal(c.Template, &many) == nil:
		return many
	}
	return nil
}
