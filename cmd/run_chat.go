package cmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat"
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

// openStyle reads how a model of the store is talked to, if it can be run at all.
func openStyle(store *manifest.Store, entry *manifest.Entry) (*talk.Style, error) {
	if err := store.CheckPresent(entry, false); err != nil {
		return nil, err
	}
	style, err := talk.Open(store, entry)
	if err != nil {
		return nil, err
	}
	return style, style.Texts.CheckRequires(entry.Name.String(), Version)
}

// readTemplate adds the chat template to a style, and refuses flags that would go into one where there is none.
func (o runOptions) readTemplate(c *cobra.Command, store *manifest.Store, entry *manifest.Entry, style *talk.Style) error {
	if err := style.ReadTemplate(c.Context(), store, entry); err != nil {
		return fmt.Errorf("%w; --raw gives the model the prompt as it is", err)
	}
	for _, name := range []string{"think", "system"} {
		if style.Template == nil && c.Flags().Changed(name) {
			return fmt.Errorf("%s has no chat template, which --%s would go into", entry.Name, name)
		}
	}
	return nil
}

// question is what the command line asks.
func (o runOptions) question(c *cobra.Command, style *talk.Style, p prompt, pictures []runtime.Picture) question {
	q := question{prompt: p, pictures: pictures, think: o.think, parameters: o.parameters(c), ignoreEOS: o.ignoreEOS, draft: o.draft, wantIDs: o.json}
	if style.Template == nil {
		return q
	}
	q.system = style.Texts.System
	if c.Flags().Changed("system") {
		q.system = o.system
	}
	q.turns = []chat.Message{userTurn(p.text, len(pictures))}
	return q
}

// userTurn is a message that shows pictures before its text.
func userTurn(text string, pictures int) chat.Message {
	m := chat.Message{Role: "user", Content: text}
	if pictures > 0 {
		m.Parts = talk.TextParts(text, pictures)
	}
	return m
}
