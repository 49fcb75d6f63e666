package plan

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest"
)

// templates reads the chat templates of the image to be: the TEMPLATE line's, else the source image's, else the
// checkpoint's.
func templates(src *source.Source, line *string) (*chat.Templates, error) {
	if line != nil && *line != "" {
		return chat.One(*line), nil
	}
	var files []chat.File
	for _, f := range src.Files {
		name := f.Name
		switch {
		case f.Kind == manifest.KindTemplate && line == nil:
			name = chat.TemplateFile
		case f.Kind != manifest.KindFile || !chat.HoldsTemplate(name):
			continue
		case len(f.Data) > limits.TemplateFile:
			return nil, src.Located(fmt.Errorf("%s: %w: %d bytes; at most %d", name, source.ErrSource, len(f.Data),
				limits.TemplateFile))
		}
		files = append(files, chat.File{Name: name, Data: f.Data})
	}
	t := chat.ReadTemplates(files, "")
	if err := t.Err(); err != nil {
		return nil, src.Located(err)
	}
	return t, nil
}

// checkTemplates fails if the chat templates cannot be read, and warns about those that cannot be compiled: the model
// still runs without them. parseRequest has checked that of a TEMPLATE line.
func (p *planner) checkTemplates(ctx context.Context) (warnings []string, err error) {
	t, err := templates(p.src, p.opts.Template)
	if err != nil {
		return nil, err
	}
	for _, n := range t.All() {
		if n.File == "" {
			continue
		}
		file := n.File
		if f, ok := p.src.File(file); ok && f.Source == "" && !p.src.IsImage() {
			file = "tokenizer.chat_template" // of a GGUF file
		}
		if _, err := t.Compile(ctx, n); err != nil {
			warnings = append(warnings, p.src.Located(fmt.Errorf("%s: the chat template cannot be used: %w; "+
				"a TEMPLATE line replaces it, and --raw runs without one", file, err)).Error())
		}
	}
	if _, err := t.Get(""); err != nil && !t.Empty() {
		warnings = append(warnings, fmt.Sprintf("%v: requests that choose none of these fail; a TEMPLATE line adds one", err))
	}
	return warnings, nil
}

// readsTools reports whether requests with tools get a template that uses them.
func readsTools(t *chat.Templates) bool {
	n, err := t.For(chat.Request{Tools: []chat.Tool{{}}})
	return err == nil && toolsInTemplate.MatchString(n.Text)
}

// rendered returns the texts of all templates that requests choose.
func rendered(t *chat.Templates) string {
	var texts []string
	for _, n := range t.Rendered() {
		texts = append(texts, n.Text)
	}
	slices.Sort(texts)
	return strings.Join(texts, "\n")
}

// toolsInTemplate matches the use of the variable that holds the tool descriptions, in Jinja and in the Go templates of
// TEMPLATE lines.
var toolsInTemplate = regexp.MustCompile(`\{[%{][^%}]*(\btools\b|\.Tools\b)`)
