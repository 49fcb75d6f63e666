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

// thinkLevels are the values of --think besides on and off.
var thinkLevels = []string{"low", "medium", "high"}

func (o runOptions) checkChat(c *cobra.Command) error {
	if o.think != "" && o.think != "on" && o.think != "off" && !slices.Contains(thinkLevels, o.think) {
		return usagef("--think %q: want on, off, %s", o.think, strings.Join(thinkLevels, ", "))
	}
	for _, name := range []string{"think", "system"} {
		if c.Flags().Changed(name) && (o.raw || o.promptIDs != "") {
			return usagef("--%s needs the chat template, which --raw and --prompt-ids skip", name)
		}
	}
	return nil
}

// openStyle reads the prompt format of a model in the store. It fails if the model cannot be run.
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

// readTemplate adds the chat template to a style. It fails if a flag needs a template and the model has none.
func (o runOptions) readTemplate(c *cobra.Command, store *manifest.Store, entry *manifest.Entry,
	style *talk.Style) error {
	if err := style.ReadTemplate(c.Context(), store, entry); err != nil {
		return fmt.Errorf("%w; use --raw to skip the template", err)
	}
	for _, name := range []string{"think", "system"} {
		if style.Template == nil && c.Flags().Changed(name) {
			return fmt.Errorf("%s has no chat template, which --%s needs", entry.Name, name)
		}
	}
	return nil
}

// modelRequest returns the request that the command line describes.
func (o runOptions) modelRequest(
	c *cobra.Command, style *talk.Style, p prompt, pictures []runtime.Picture,
) modelRequest {
	r := modelRequest{
		prompt:     p,
		pictures:   pictures,
		think:      o.think,
		parameters: o.parameters(c),
		ignoreEOS:  o.ignoreEOS,
		draft:      o.draft,
		wantIDs:    o.json,
	}
	if style.Template == nil {
		return r
	}
	r.system = style.Texts.System
	if c.Flags().Changed("system") {
		r.system = o.system
	}
	r.turns = []chat.Message{userTurn(p.text, len(pictures))}
	return r
}

// userTurn returns a user message with pictures before its text.
func userTurn(text string, pictures int) chat.Message {
	m := chat.Message{Role: "user", Content: text}
	if pictures > 0 {
		m.Parts = talk.TextParts(text, pictures)
	}
	return m
}
