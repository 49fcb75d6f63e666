package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/tokenizer"
	"github.com/spf13/cobra"
)

// tokenizeChat renders the chat template with the variables on standard input, and prints the token ids of the text.
func (a *app) tokenizeChat(c *cobra.Command, tok *tokenizer.Tokenizer, from string) error {
	text, err := io.ReadAll(io.LimitReader(a.stdin(c.Context()), maxVars+1))
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
	source, err := chatTemplate(c, from)
	if err != nil {
		return err
	}
	t, err := chat.Parse(c.Context(), source)
	if err != nil {
		return err
	}
	clock, err := clock("")
	if err != nil {
		return err
	}
	out, err := t.RenderVars(c.Context(), vars, jinja.Options{Now: clock})
	if err != nil {
		return err
	}
	return a.printIDs(tok, out, false)
}

// chatTemplate returns the template of a folder, or else of a model of the store.
func chatTemplate(c *cobra.Command, from string) (string, error) {
	if info, err := os.Stat(from); err != nil || !info.IsDir() {
		return templateSource(c, from, "")
	}
	var files []chat.File
	for _, name := range []string{"chat_template.jinja", "chat_template.json", tokenizerConfig} {
		b, err := readFile(filepath.Join(from, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		files = append(files, chat.File{Name: name, Data: b})
	}
	text, err := chat.Choose(files, "")
	if err != nil {
		return "", fmt.Errorf("%s: %w", from, err)
	}
	return text, nil
}
