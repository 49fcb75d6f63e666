package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/models"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/settings"
	"github.com/spf13/cobra"
)

// maxVars bounds the JSON of template variables in bytes.
const maxVars = 256 << 20

func templateCommand(a *cli.App) *cobra.Command {
	var now, named string
	c := &cobra.Command{
		Use:   "template NAME|FILE",
		Short: "Render a chat template",
		Long: `Render the chat template in FILE, or of the model NAME, and print the text. The variables come as a JSON
object on standard input and are passed unchanged: messages, tools, add_generation_prompt, bos_token... Of a
model's named templates, tools choose "tool_use" and documents "rag", as in a server, unless --template names one.`,
		Args: cli.Between(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			clock, err := cli.Clock(now)
			if err != nil {
				return err
			}
			templates, from, err := templatesOf(c, args[0])
			if err != nil {
				return err
			}
			text, err := io.ReadAll(io.LimitReader(a.Stdin(c.Context()), maxVars+1))
			if err != nil {
				return fmt.Errorf("read the variables: %w", err)
			}
			if len(text) > maxVars {
				return fmt.Errorf("the variables exceed %d bytes", maxVars)
			}
			vars, err := jinja.DecodeVars(text)
			if err != nil {
				return err
			}
			out, err := renderVars(c.Context(), templates, from, named, vars, clock)
			if err != nil {
				return err
			}
			_, err = io.WriteString(a.Out, out)
			return err
		},
	}
	c.Flags().StringVar(&now, "now", "", "template `time` (default $SOURCE_DATE_EPOCH or now)")
	c.Flags().StringVar(&named, "template", "", "`name` of a model's template: default, tool_use, rag...")
	return c
}

// renderVars renders the template with a name, or else the one that the variables choose.
func renderVars(ctx context.Context, templates *chat.Templates, from, named string, vars *jinja.Dict,
	clock func() time.Time) (string, error) {
	one, err := templates.Get(named)
	if named == "" {
		one, err = templates.ForVars(vars)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", from, err)
	}
	t, err := templates.Compile(ctx, one)
	if err != nil {
		return "", err
	}
	return t.RenderVars(ctx, vars, jinja.Options{Now: clock})
}

// templatesOf returns the template in a file, or else those of the model with that name. from is what has them, for
// messages.
func templatesOf(c *cobra.Command, arg string) (t *chat.Templates, from string, err error) {
	if info, err := os.Stat(arg); err == nil && info.Mode().IsRegular() {
		if info.Size() > limits.TemplateText {
			return nil, "", fmt.Errorf("template %s has %d bytes; at most %d are allowed", arg, info.Size(),
				limits.TemplateText)
		}
		b, err := os.ReadFile(arg)
		return chat.One(string(b)), arg, err
	}
	store, entry, err := models.Resolve(c, arg)
	if errors.Is(err, manifest.ErrNotFound) {
		return nil, "", fmt.Errorf("%w, and no such file exists", err)
	}
	if err != nil {
		return nil, "", err
	}
	texts, err := settings.Read(store, entry)
	if err != nil {
		return nil, "", err
	}
	return texts.Templates, entry.Name.String(), nil
}
