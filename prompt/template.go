package prompt

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/settings"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/runtime"
)

// Style has a model's chat templates and texts, from its image. It is safe for concurrent use.
type Style struct {
	Texts     *settings.Texts
	Templates *chat.Templates // none: prompts are used verbatim

	name          string  // the model's name, for errors
	fromModelfile bool    // the template is that of a TEMPLATE line
	shapes        *shapes // nil: nothing is kept
}

// Open reads an image's texts and templates. Templates are compiled when a request needs them; see [Style.Ready].
func Open(store *store.Store, entry *store.Entry) (*Style, error) {
	texts, err := settings.Read(store, entry)
	if err != nil {
		return nil, runtime.OfImage(err)
	}
	return &Style{Texts: texts, Templates: texts.Templates, name: entry.Name.String(), fromModelfile: texts.Own != "",
		shapes: &shapes{}}, nil
}

// HasTemplate reports whether prompts are rendered, not used verbatim.
func (s *Style) HasTemplate() bool { return !s.Templates.Empty() }

// Ready returns an error if the template of a request cannot be used.
func (s *Style) Ready(ctx context.Context, r chat.Request) error {
	_, err := s.choose(ctx, r)
	return err
}

// choose returns the template of a request, or none for a model without templates.
func (s *Style) choose(ctx context.Context, r chat.Request) (chosen, error) {
	c := chosen{Style: s}
	if !s.HasTemplate() {
		return c, nil
	}
	var err error
	if c.Chosen, err = s.Templates.Choose(ctx, r); err != nil {
		return c, s.named(err)
	}
	return c, nil
}

// named returns an error with the model's name.
func (s *Style) named(err error) error {
	if err == nil || s.name == "" {
		return err
	}
	return fmt.Errorf("%s: %w", s.name, err)
}

// chosen is a style with the template of a request; Template is nil if the model has none.
type chosen struct {
	*Style
	chat.Chosen
}

// With returns a copy of the style with another template.
func (s *Style) With(ctx context.Context, template string) (*Style, error) {
	other := *s
	other.Templates, other.fromModelfile, other.shapes = chat.One(template), true, &shapes{}
	_, err := other.Templates.Choose(ctx, chat.Request{})
	if err != nil {
		return nil, err
	}
	return &other, nil
}

// suffixPlace matches where a Go template inserts the text after the gap.
var suffixPlace = regexp.MustCompile(`\{\{[^}]*\.Suffix\b`)

// Fills reports whether the template supports fill-in-the-middle: whether it uses the text after the gap.
func (s *Style) Fills() bool {
	n, err := s.Templates.Get("")
	return err == nil && suffixPlace.MatchString(n.Text)
}

// thinkInTemplate matches the variables and tags with which chat templates control thinking.
var thinkInTemplate = regexp.MustCompile(`\b(enable_thinking|thinking|reasoning_effort)\b|\.Think|<think>`)

// CanThink reports whether a request can turn thinking on, for a model with these capabilities. A model that lists
// none, as other tools' do not, can.
func (s *Style) CanThink(capabilities []string, r chat.Request) bool {
	if len(capabilities) == 0 || slices.Contains(capabilities, manifest.CapThinking) {
		return true
	}
	_, reads := parse.Abilities(s.Texts.Parser)
	n, err := s.Templates.For(r)
	return reads || err == nil && thinkInTemplate.MatchString(n.Text)
}
