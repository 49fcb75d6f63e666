package vocab

import (
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/convert/gguf"
)

// Keys of chat templates. Each template but the default one has a key of its own, and the list has their names.
const (
	templateKey   = "tokenizer.chat_template"
	templatesKey  = "tokenizer.chat_templates"
	templateStart = templateKey + "."
)

// namedTemplate is one of several chat templates.
type namedTemplate struct {
	Name     string `json:"name"`
	Template string `json:"template"`
}

// templates returns the chat template: a text, or a list of named ones; nil if there is none.
func (v *vocabulary) templates() (any, error) {
	main, err := v.Text(templateKey)
	if err != nil {
		return nil, err
	}
	var named []namedTemplate
	for _, k := range v.Keys() {
		name, ok := strings.CutPrefix(k, templateStart)
		if !ok || name == chat.DefaultName && main != "" {
			continue
		}
		text, err := v.Text(k)
		if err != nil {
			return nil, err
		}
		named = append(named, namedTemplate{name, text})
	}
	if len(named) == 0 {
		if main == "" {
			return nil, nil
		}
		return main, nil
	}
	if main != "" {
		named = slices.Insert(named, 0, namedTemplate{chat.DefaultName, main})
	}
	return named, nil
}

// templatePairs returns the keys of chat templates as the Python package gguf names them: letters and digits of ASCII,
// and underscores for the rest. lost are the names of templates that would get the key of another one.
func templatePairs(list []chat.Named) (pairs []gguf.Pair, lost []string) {
	keys := map[string]bool{}
	for _, n := range list {
		keys[n.Name] = keys[n.Name] || n.Name == keyName(n.Name)
	}
	var names []string
	for _, n := range list {
		key := keyName(n.Name)
		switch {
		case n.Name == chat.DefaultName:
			pairs = append(pairs, gguf.Pair{Key: templateKey, Value: gguf.Text(n.Text)})
		case key == "" || key != n.Name && (keys[key] || chat.ByRequest(key)):
			lost = append(lost, n.Name)
		default:
			keys[key] = true
			names = append(names, key)
			pairs = append(pairs, gguf.Pair{Key: templateStart + key, Value: gguf.Text(n.Text)})
		}
	}
	if len(names) > 0 {
		pairs = append(pairs, gguf.Pair{Key: templatesKey, Value: gguf.Texts(names)})
	}
	return pairs, lost
}

// keyName returns a template's name in a key.
func keyName(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, name)
}
