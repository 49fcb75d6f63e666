package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server/talk"
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

// conversation is what a chat template makes a prompt of.
type conversation struct {
	style *talk.Style
	talk.Conversation
}

// conversation is nil where the prompt goes to the model as it is.
func (o runOptions) conversation(c *cobra.Command, store *manifest.Store, entry *manifest.Entry, p prompt) (*conversation, error) {
	style, err := talk.Open(store, entry)
	if err != nil {
		return nil, err
	}
	if err := style.Texts.CheckRequires(entry.Name.String(), Version); err != nil {
		return nil, err
	}
	if o.raw || p.ids != nil {
		return nil, nil
	}
	if err := style.ReadTemplate(store, entry); err != nil {
		return nil, fmt.Errorf("%w; --raw gives the model the prompt as it is", err)
	}
	if style.Template == nil {
		for _, name := range []string{"think", "system"} {
			if c.Flags().Changed(name) {
				return nil, fmt.Errorf("%s has no chat template, which --%s would go into", entry.Name, name)
			}
		}
		return nil, nil
	}
	now, err := clock("")
	if err != nil {
		return nil, err
	}
	t := &conversation{style: style}
	t.Request = chat.Request{AddGenerationPrompt: true, Options: jinja.Options{Now: now}}
	t.Messages = o.messages(c, style.Texts, p)
	if o.think != "" {
		think := o.think != "off"
		t.Think = &think
		if slices.Contains(thinkLevels, o.think) {
			t.ThinkLevel = o.think
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
		turn.Parts = talk.TextParts(p.text, len(p.pictures))
	}
	return append(out, turn)
}

// begin makes the prompt for a model that is loaded.
func (t *conversation) begin(ctx context.Context, model *runtime.Local, pictures []runtime.Picture) (*talk.Prompt, error) {
	t.Pictures = pictures
	p, err := t.style.Begin(ctx, model, t.Conversation)
	if errors.Is(err, jinja.ErrRender) || errors.Is(err, jinja.ErrLimit) {
		err = fmt.Errorf("%w; --raw gives the model the prompt as it is", err)
	}
	return p, err
}
