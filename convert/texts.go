package convert

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/manifest"
)

// The texts of a Modelfile are files of the image.
const (
	templateName = "template"
	systemName   = "system"
	messagesName = "messages.json"
)

// Message is a message that every conversation begins with.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// addTexts puts the texts of the options in the place of those of the image.
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

// replace gives the image a text of a kind: nil keeps what there is, "" leaves it out. A file that says the same stays.
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

// has tells whether the image that another is made from has such a text.
func (inv *Inventory) has(kind manifest.Kind, text string) bool {
	return inv.stored &&
		slices.ContainsFunc(inv.Files, func(f File) bool { return f.Kind == kind && string(f.Data) == text })
}

// decodeParameters reads a file of parameters. Numbers keep their digits.
func decodeParameters(data []byte) (map[string]any, error) {
	var params map[string]any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&params); err != nil {
		return nil, err
	}
	return params, nil
}

// namedTemplate is a chat template of a tokenizer's configuration.
type namedTemplate struct {
	Name     string `json:"name"`
	Template string `json:"template"`
}

// templates are the chat templates of a tokenizer's configuration; the only one is the default.
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
