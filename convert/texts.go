package convert

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/manifest"
)

// Files of an image that hold a Modelfile's texts.
const (
	templateName = "template"
	systemName   = "system"
	messagesName = "messages.json"
)

// Message is an initial message of every conversation.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// addTexts replaces the image's texts by those of the options.
func (p *Plan) addTexts(opts PlanOptions) error {
	p.replace(manifest.KindTemplate, templateName, opts.Template)
	p.replace(manifest.KindSystem, systemName, opts.System)
	if len(opts.Messages) == 0 {
		return nil
	}
	data, err := marshal(opts.Messages)
	if err != nil {
		return fmt.Errorf("%s: %w", messagesName, err)
	}
	text := string(data)
	p.replace(manifest.KindMessages, messagesName, &text)
	return nil
}

// replace sets the image's text of a kind: nil keeps the existing one, "" removes it. A file with the same text keeps
// its name.
func (p *Plan) replace(kind manifest.Kind, name string, text *string) {
	if text == nil {
		return
	}
	same := slices.IndexFunc(p.Files, func(f File) bool { return f.Kind == kind && string(f.Data) == *text })
	if same >= 0 && *text != "" {
		keep := p.Files[same].Name
		p.Files = slices.DeleteFunc(p.Files, func(f File) bool { return f.Kind == kind && f.Name != keep })
		return
	}
	p.Files = slices.DeleteFunc(p.Files, func(f File) bool { return f.Kind == kind })
	if *text != "" {
		p.addFile(kind, p.freeName(name), []byte(*text))
	}
}

// has reports whether the source image has a text.
func (inv *Inventory) has(kind manifest.Kind, text string) bool {
	return inv.stored &&
		slices.ContainsFunc(inv.Files, func(f File) bool { return f.Kind == kind && string(f.Data) == text })
}

// decodeParameters decodes a file of parameters. Numbers keep their digits.
func decodeParameters(data []byte) (map[string]any, error) {
	var params map[string]any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&params); err != nil {
		return nil, err
	}
	return params, nil
}

// namedTemplate is a chat template in a tokenizer's configuration.
type namedTemplate struct {
	Name     string `json:"name"`
	Template string `json:"template"`
}

// templates returns the chat templates in a tokenizer's configuration. A single one is named default.
func templates(config []byte) []namedTemplate {
	var c struct {
		Template json.RawMessage `json:"chat_template"`
	}
	if json.Unmarshal(config, &c) != nil {
		return nil
	}
	var one string
	var many []namedTemplate
	switch {
	case json.Unmarshal(c.Template, &one) == nil:
		return []namedTemplate{{"default", one}}
	case json.Unmarshal(c.Template, &many) == nil:
		return many
	}
	return nil
}
