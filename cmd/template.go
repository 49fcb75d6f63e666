package cmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/limits"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/server/talk"
	"github.com/spf13/cobra"
)

// maxVars bounds the variables of a template that come on standard input, in bytes.
const maxVars = 256 << 20

func (a *app) templateCmd() *cobra.Command {
	var now, named string
	c := &cobra.Command{
		Use:   "template NAME|FILE",
		Short: "Render a chat template",
		Long: `Renders the chat template in FILE, or of the model NAME, with the variables that come as a JSON object on standard
input, exactly as given: messages, tools, add_generation_prompt, bos_token... The text goes to standard output.`,
		Args: between(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			clock, err := clock(now)
			if err != nil {
				return err
			}
			source, err := templateSource(c, args[0], named)
			if err != nil {
				return err
			}
			text, err := io.ReadAll(io.LimitReader(a.stdin(c.Context()), maxVars+1))
			if err != nil {
				return fmt.Errorf("reading the variables: %w", err)
			}
			if len(text) > maxVars {
				return fmt.Errorf("the variables are longer than %d bytes", maxVars)
			}
			vars, err := jinja.DecodeVars(text)
			if err != nil {
				return err
			}
			t, err := chat.Parse(c.Context(), source)
			if err != nil {
				return err
			}
			out, err := t.RenderVars(c.Context(), vars, jinja.Options{Now: clock})
			if err != nil {
				return err
			}
			_, err = io.WriteString(a.out, out)
			return err
		},
	}
	c.Flags().StringVar(&now, "now", "", "the template's clock, as 2026-01-02T03:04:05; else SOURCE_DATE_EPOCH (UTC), else the time")
	c.Flags().StringVar(&named, "template", "", "which of several templates of a model: default, tool_use, rag...")
	return c
}

// clock is the time that templates see: the flag's, that of SOURCE_DATE_EPOCH, or nil for the present.
func clock(flag string) (func() time.Time, error) {
	var t time.Time
	if flag != "" {
		var err error
		if t, err = time.Parse("2006-01-02T15:04:05", flag); err != nil {
			return nil, usagef("--now %q is no time such as 2026-01-02T03:04:05", flag)
		}
	} else if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		s, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return nil, usagef("SOURCE_DATE_EPOCH %q is no number of seconds", epoch)
		}
		t = time.Unix(s, 0).UTC()
	} else {
		return nil, nil
	}
	return func() time.Time { return t }, nil
}

// templateSource is the text of a template: of the file, or else of the model of that name.
func templateSource(c *cobra.Command, arg, named string) (string, error) {
	if info, err := os.Stat(arg); err == nil && info.Mode().IsRegular() {
		if info.Size() > limits.TemplateText {
			return "", fmt.Errorf("template %s: %d bytes; at most %d", arg, info.Size(), limits.TemplateText)
		}
		b, err := os.ReadFile(arg)
		return string(b), err
	}
	store, entry, err := resolve(c, arg)
	if errors.Is(err, manifest.ErrNotFound) {
		return "", fmt.Errorf("%w, and there is no file of that name", err)
	}
	if err != nil {
		return "", err
	}
	return talk.TemplateText(store, entry, named)
}
