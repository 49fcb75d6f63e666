package talk

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/limits"
	"github.com/ingotml/ingot/manifest"
)

// TemplateText is the text of a model's chat template, the default one where named is empty. Its error may be chat.ErrNoTemplate or
// chat.ErrOtherTemplates.
func TemplateText(store *manifest.Store, entry *manifest.Entry, named string) (string, error) {
	var files []chat.File
	for _, l := range entry.Image.Layers {
		if l.Kind == manifest.KindTensor || !chat.HoldsTemplate(l.Name) && l.Kind != manifest.KindTemplate {
			continue
		}
		b, err := store.ReadBlob(l.Digest, limits.TemplateFile)
		if err != nil {
			return "", fmt.Errorf("%s of %s: %w", l.Name, entry.Name, err)
		}
		name := l.Name
		if l.Kind == manifest.KindTemplate {
			name = chat.TemplateFile
		}
		files = append(files, chat.File{Name: name, Data: b})
	}
	text, err := chat.Choose(files, named)
	if err != nil {
		return "", fmt.Errorf("%s: %w", entry.Name, err)
	}
	return text, nil
}

// Style is how a model is talked to: what its image says of that. It may be used from any goroutine.
type Style struct {
	Texts    *convert.Texts
	Template chat.Template // nil where the prompt goes to the model as it is
	Text     string        // of the template

	name string // of the model, in errors
	own  bool   // the template is that of a TEMPLATE line
}

// Open reads what the image says beside its template, which ReadTemplate adds, since a prompt may not need one.
func Open(store *manifest.Store, entry *manifest.Entry) (*Style, error) {
	texts, err := convert.ReadTexts(store, entry)
	if err != nil {
		return nil, err
	}
	return &Style{Texts: texts, name: entry.Name.String()}, nil
}

// ReadTemplate adds the image's chat template, where it has one.
func (s *Style) ReadTemplate(ctx context.Context, store *manifest.Store, entry *manifest.Entry) (err error) {
	s.Text, err = TemplateText(store, entry, "")
	if errors.Is(err, chat.ErrNoTemplate) {
		return nil
	}
	if err != nil {
		return err
	}
	if s.Template, err = chat.Parse(ctx, s.Text); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	for _, l := range entry.Image.Layers {
		s.own = s.own || l.Kind == manifest.KindTemplate
	}
	return nil
}

// With is the style with another template.
func (s *Style) With(ctx context.Context, template string) (*Style, error) {
	t, err := chat.Parse(ctx, template)
	if err != nil {
		return nil, err
	}
	other := *s
	other.Template, other.Text, other.own = t, template, true
	return &other, nil
}

// suffixPlace is where a Go template writes the text behind a gap.
var suffixPlace = regexp.MustCompile(`\{\{[^}]*\.Suffix\b`)

// Fills reports whether the template has a place for the text behind a gap.
func (s *Style) Fills() bool { return s.Template != nil && suffixPlace.MatchString(s.Text) }
