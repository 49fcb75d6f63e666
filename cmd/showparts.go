package cmd

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/internal/limits/clip"
	"github.com/ingotml/ingot/manifest/settings"
	"github.com/ingotml/ingot/manifest/store"
)

// showParts are the parts of a model that show can print on their own.
var showParts = []struct {
	flag, help string
	print      func(*app, *store.Entry, *settings.Texts) error
}{
	{"modelfile", "a Modelfile that creates the same image again", showModelfile},
	{"template", "the chat template", func(a *app, e *store.Entry, t *settings.Texts) error {
		if _, err := t.Templates.Get(""); errors.Is(err, chat.ErrOtherTemplates) {
			a.note("note: %s: %v", e.Name, err)
			return nil
		}
		return a.printPart(e, "chat template", t.Template)
	}},
	{"system", "the system prompt", func(a *app, e *store.Entry, t *settings.Texts) error {
		return a.printPart(e, "system prompt", t.System)
	}},
	{"parameters", "the default generation parameters", func(a *app, e *store.Entry, t *settings.Texts) error {
		return a.printPart(e, "default parameters", settings.ParameterText(t.Parameters))
	}},
	{"license", "the license texts", func(a *app, e *store.Entry, t *settings.Texts) error {
		var texts []string
		for _, l := range t.Licenses {
			texts = append(texts, strings.TrimRight(l, "\n")+"\n")
		}
		return a.printPart(e, "license text", strings.Join(texts, "\n"))
	}},
}

// printPart prints a text, or a note if it is empty.
func (a *app) printPart(e *store.Entry, what, text string) error {
	if text == "" {
		a.note("note: %s has no %s", e.Name, what)
		return nil
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err := fmt.Fprint(a.out, text)
	return err
}

func showModelfile(a *app, e *store.Entry, t *settings.Texts) error {
	file, notes := t.Modelfile(e.Name.String())
	text, err := file.Format()
	if err != nil {
		return err
	}
	for _, n := range notes {
		text += "# " + n + "\n"
	}
	_, err = fmt.Fprint(a.out, "# FROM includes the weights and files; the other lines repeat what the image has.\n", text)
	return err
}

// excerpt returns the text as one sanitized line, cut after most characters.
func excerpt(s string, most int) string { return terminal.Line(clip.Line(s, most)) }
