package convert

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/manifest"
)

// checkTemplates warns about unusable chat templates in the checkpoint. The model still runs without one. If there is a
// TEMPLATE line, it replaces them, and parseRequest has checked it.
func (inv *Inventory) checkTemplates(ctx context.Context, opts PlanOptions) (warnings []string) {
	if opts.Template != nil && *opts.Template != "" {
		return nil
	}
	check := func(what, text string) {
		if _, err := chat.Parse(ctx, text); err != nil {
			warnings = append(warnings, fmt.Sprintf("%s: the chat template cannot be used: %v", what, err))
		}
	}
	for _, f := range inv.Files {
		path := f.Name
		if !inv.stored {
			path = filepath.Join(inv.From, f.Name)
		}
		switch {
		case f.Kind == manifest.KindTemplate:
			if opts.Template == nil {
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
