package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/runtime"
	"github.com/spf13/cobra"
)

// thinkLevels are the values of --think beside on and off.
var thinkLevels = []string{"low", "medium", "high"}

func (o runOptions) checkChat(c *cobra.Command) error {
	if o.think != "" && o.think != "on" && o.think != "off" && !slices.Contains(thinkLevels, o.think) {
		return usagef("--think %q: want on, off, %s", o.think, strings.Join(thinkLevels, ", "))
	}
	for _, name := range []string{"think", "system"} {
		if c.Flags().Changed(name) && (o.raw || o.promptIDs != "") {
			return usagef("--%s goes into the chat template, which --raw and --prompt-ids leave out", name)
		}
	}
	return nil
}

// conversation is what a chat template makes a prompt of, and who reads the answer.
type conversation struct {
	request  chat.Request
	template chat.Template
	text     string // of the template
	own      bool   // the template is that of a TEMPLATE line
	parser   string // "" = none
	pictures []runtime.Picture
}

// conversation is nil where the prompt goes to the model as it is.
func (o runOptions) conversation(c *cobra.Command, store *manifest.Store, entry *manifest.Entry, p prompt) (*conversation, error) {
	texts, err := convert.ReadTexts(store, entry)
	if err != nil {
		return nil, err
	}
	if err := texts.CheckRequires(entry.Name.String(), Version); err != nil {
		return nil, err
	}
	if o.raw || p.ids != nil {
		return nil, nil
	}
	t := &conversation{parser: texts.Parser}
	t.text, err = imageTemplate(store, entry, "")
	if errors.Is(err, chat.ErrNoTemplate) {
		for _, name := range []string{"think", "system"} {
			if c.Flags().Changed(name) {
				return nil, fmt.Errorf("%s has no chat template, which --%s would go into", entry.Name, name)
			}
		}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w; --raw gives the model the prompt as it is", err)
	}
	if t.template, err = chat.Parse(t.text); err != nil {
		return nil, fmt.Errorf("%s: %w; --raw gives the model the prompt as it is", entry.Name, err)
	}
	for _, l := range entry.Image.Layers {
		t.own = t.own || l.Kind == manifest.KindTemplate
	}
	now, err := clock("")
	if err != nil {
		return nil, err
	}
	t.request = chat.Request{AddGenerationPrompt: true, Options: jinja.Options{Now: now}}
	t.request.Messages = o.messages(c, texts, p)
	if o.think != "" {
		think := o.think != "off"
		t.request.Think = &think
		if slices.Contains(thinkLevels, o.think) {
			t.request.ThinkLevel = o.think
		}
	}
	return t, nil
}

// messages are the system text, the image's messages, and the prompt, its pictures first.
func (o runOptions) messages(c *cobra.Command, texts *convert.Texts, p prompt) []chat.Message {
	system := texts.System
	if c.Flags().Changed("system") {
		system = o.system
	}
	var out []chat.Message
	if system != "" {
		out = append(out, chat.Message{Role: "system", Content: system})
	}
	for _, m := range texts.Messages {
		out = append(out, chat.Message{Role: m.Role, Content: m.Content})
	}
	turn := chat.Message{Role: "user", Content: p.text}
	if len(p.pictures) > 0 {
		turn.Parts = append(slices.Repeat([]chat.Part{{Type: "image"}}, len(p.pictures)), chat.Part{Type: "text", Text: p.text})
	}
	return append(out, turn)
}

// begin gives the ids of the prompt and the reader of the answer.
func (t *conversation) begin(ctx context.Context, model *runtime.Local) ([]int32, talkReader, error) {
	t.request.BOS, t.request.EOS = model.BOSEOS()
	if len(t.pictures) > 0 {
		if err := model.CheckPictures(); err != nil {
			return nil, talkReader{}, err
		}
	}
	text, ids, err := t.render(ctx, model)
	if len(t.pictures) > 0 && (err != nil || model.PicturePlaces(ids) < len(t.pictures)) {
		// The template knows of no pictures: they are shown by the tokens that the model has for them.
		turn := &t.request.Messages[len(t.request.Messages)-1]
		turn.Parts = nil
		if turn.Content, t.pictures, err = model.ShowPictures(turn.Content, t.pictures); err == nil {
			text, ids, err = t.render(ctx, model)
		}
	}
	if err != nil || !parse.Known(t.parser) {
		return ids, talkReader{}, err
	}
	_, think := parse.Detect(t.text)
	parser, err := parse.New(t.parser, parse.Options{Think: think, Thinking: parse.Opens(t.parser, think, text)})
	return ids, talkReader{parser}, err
}

// render gives the prompt and its ids.
func (t *conversation) render(ctx context.Context, model *runtime.Local) (string, []int32, error) {
	text, err := t.template.Render(ctx, t.request)
	if err != nil {
		return "", nil, fmt.Errorf("%w; --raw gives the model the prompt as it is", err)
	}
	// Templates of Modelfiles leave BOS to the tokenizer; published ones write it themselves.
	ids, err := model.EncodeRendered(text, t.own)
	return text, ids, err
}

// talkReader takes the model's text apart; without a parser all of it is the answer.
type talkReader struct{ parser parse.Parser }

func (r talkReader) feed(text string) []parse.Event {
	switch {
	case r.parser != nil:
		return r.parser.Feed(text)
	case text != "":
		return []parse.Event{{Kind: parse.Content, Text: text}}
	}
	return nil
}

func (r talkReader) close() ([]parse.Event, error) {
	if r.parser == nil {
		return nil, nil
	}
	return r.parser.Close()
}
