package prompt

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/convert/settings"
	"github.com/ingotml/ingot/limits"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
)

// TemplateText returns a model's chat template with a name, or the default template if named is empty, which may be one
// that is built in. It may fail with chat.ErrNoTemplate or chat.ErrOtherTemplates.
func TemplateText(store *store.Store, entry *store.Entry, named string) (string, error) {
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
	if errors.Is(err, chat.ErrNoTemplate) && named == "" {
		texts, err := settings.Read(store, entry)
		if err != nil {
			return "", err
		}
		if texts.Template != "" {
			return texts.Template, nil
		}
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", entry.Name, err)
	}
	return text, nil
}

// Style has a model's chat template and texts, from its image. It is safe for concurrent use after ReadTemplate.
type Style struct {
	Texts    *settings.Texts
	Template chat.Template // nil: prompts are used verbatim
	Text     string        // of the template

	name          string // the model's name, for errors
	fromModelfile bool   // the template is that of a TEMPLATE line
}

// Open reads an image's texts, but not its template: a prompt may not need one. See ReadTemplate.
func Open(store *store.Store, entry *store.Entry) (*Style, error) {
	texts, err := settings.Read(store, entry)
	if err != nil {
		return nil, err
	}
	return &Style{Texts: texts, name: entry.Name.String()}, nil
}

// ReadTemplate reads the image's chat template, if it has one.
func (s *Style) ReadTemplate(ctx context.Context, store *store.Store, entry *store.Entry) (err error) {
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
		s.fromModelfile = s.fromModelfile || l.Kind == manifest.KindTemplate
	}
	return nil
}

// With returns a copy of the style with another template.
func (s *Style) With(ctx context.Context, template string) (*Style, error) {
	t, err := chat.Parse(ctx, template)
	if err != nil {
		return nil, err
	}
	other := *s
	other.Template, other.Text, other.fromModelfile = t, template, true
	return &other, nil
}

// suffixPlace matches where a Go template inserts the text after the gap.
var suffixPlace = regexp.MustCompile(`\{\{[^}]*\.Suffix\b`)

// Fills reports whether the template supports fill-in-the-middle: whether it uses the text after the gap.
func (s *Style) Fills() bool { return s.Template != nil && suffixPlace.MatchString(s.Text) }

// thinkInTemplate matches the variables and tags with which chat templates control thinking.
var thinkInTemplate = regexp.MustCompile(`\b(enable_thinking|thinking|reasoning_effort)\b|\.Think|<think>`)

// CanThink reports whether a request can turn thinking on, for a model with these capabilities. A model that lists
// none, as other tools' do not, can.
func (s *Style) CanThink(capabilities []string) bool {
	if len(capabilities) == 0 || slices.Contains(capabilities, manifest.CapThinking) {
		return true
	}
	_, reads := parse.Abilities(s.Texts.Parser)
	return reads || thinkInTemplate.MatchString(s.Text)
}
