package run

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/runtime"
	"github.com/spf13/cobra"
)

// thinkLevels are the values of --think besides on and off.
var thinkLevels = []string{"minimal", "low", "medium", "high", "xhigh", "max"}

func (o runOptions) checkChat(c *cobra.Command) error {
	if o.think != "" && o.think != "on" && o.think != "off" && !slices.Contains(thinkLevels, o.think) {
		return cli.Usagef("--think %q: want on, off, %s", o.think, strings.Join(thinkLevels, ", "))
	}
	for _, name := range []string{"think", "system"} {
		if c.Flags().Changed(name) && (o.raw || o.promptIDs != "") {
			return cli.Usagef("--%s needs the chat template, which --raw and --prompt-ids skip", name)
		}
	}
	return nil
}

// checkTemplate fails if the chat template cannot be used, or if a flag needs one and the model has none.
func (o runOptions) checkTemplate(c *cobra.Command, entry *store.Entry, style *prompt.Style) error {
	if err := style.Ready(c.Context(), chat.Request{}); err != nil {
		return fmt.Errorf("%w; use --raw to skip the template", err)
	}
	for _, name := range []string{"think", "system"} {
		if !style.HasTemplate() && c.Flags().Changed(name) {
			return fmt.Errorf("%s has no chat template, which --%s needs", entry.Name, name)
		}
	}
	return checkThink(o.think, entry, style)
}

// checkThink returns an error if a model cannot be told to think, as servers do.
func checkThink(level string, entry *store.Entry, style *prompt.Style) error {
	switch {
	case level == "" || level == "off":
		return nil
	case !style.HasTemplate():
		return fmt.Errorf("%s has no chat template, which thinking needs", entry.Name)
	case style.CanThink(entry.Image.Config.Capabilities, chat.Request{}):
		return nil
	}
	return fmt.Errorf("%s does not support thinking: its chat template has no control for it", entry.Name)
}

// modelRequest returns the request that the command line describes.
func (o runOptions) modelRequest(
	c *cobra.Command, style *prompt.Style, p promptInput, pictures []runtime.Picture,
) modelRequest {
	r := modelRequest{
		prompt:     p,
		pictures:   pictures,
		think:      o.think,
		parameters: flagParameters(c.Flags()),
		ignoreEOS:  o.ignoreEOS,
		draft:      o.draft,
		wantIDs:    o.json,
	}
	if !style.HasTemplate() {
		return r
	}
	r.system = style.Texts.System
	if c.Flags().Changed("system") {
		r.system = o.system
	}
	r.turns = []chat.Message{prompt.UserTurn(p.text, len(pictures))}
	return r
}
