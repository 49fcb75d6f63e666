package tools

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/safetensors"
	"github.com/ingotml/ingot/tokenizer"
	"github.com/spf13/cobra"
)

// tokenizeChat renders the chat template with the variables on standard input, and prints the token ids of the text.
func tokenizeChat(a *cli.App, c *cobra.Command, tok *tokenizer.Tokenizer, from string) error {
	text, err := io.ReadAll(io.LimitReader(a.Stdin(c.Context()), maxVars+1))
	if err != nil {
		return fmt.Errorf("read the messages: %w", err)
	}
	if len(text) > maxVars {
		return fmt.Errorf("the messages exceed %d bytes", maxVars)
	}
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		text = fmt.Appendf(nil, `{"messages":%s,"add_generation_prompt":true}`, text)
	}
	vars, err := jinja.DecodeVars(text)
	if err != nil {
		return err
	}
	for name, special := range map[string]func() (int32, bool){"bos_token": tok.BOS, "eos_token": tok.EOS} {
		if _, given := vars.Get(name); given {
			continue
		}
		if id, ok := special(); ok {
			token, _ := tok.Token(id)
			if err := vars.Set(name, token); err != nil {
				return err
			}
		}
	}
	templates, from, err := chatTemplates(c, from)
	if err != nil {
		return err
	}
	clock, err := cli.Clock("")
	if err != nil {
		return err
	}
	out, err := renderVars(c.Context(), templates, from, "", vars, clock)
	if err != nil {
		return err
	}
	return printIDs(c.Context(), a, tok, out, false)
}

// chatTemplates returns the templates of a folder, or else of a model of the store.
func chatTemplates(c *cobra.Command, arg string) (t *chat.Templates, from string, err error) {
	if info, err := os.Stat(arg); err != nil || !info.IsDir() {
		return templatesOf(c, arg)
	}
	folder := safetensors.LinkedDir(arg)
	names, err := chat.TemplateFiles(folder)
	if err != nil {
		return nil, "", err
	}
	var files []chat.File
	for _, name := range names {
		b, err := readIn(folder, name)
		if err != nil {
			return nil, "", err
		}
		files = append(files, chat.File{Name: name, Data: b})
	}
	return chat.ReadTemplates(files, ""), arg, nil
}
