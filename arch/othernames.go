package arch

import (
	"encoding/json"

	"github.com/ingotml/ingot/internal/limits/pyjson"
)

// normalized returns a configuration as the type's parser reads it: with the defaults of the name that it goes by, and
// with the type's own names of keys. If it has a key under both names the other one wins, as in transformers. Keys stay
// under their other names, too.
func (a Arch) normalized(config []byte) []byte {
	var top, text map[string]json.RawMessage
	if json.Unmarshal(pyjson.Plain(config), &top) != nil {
		return config // the parser has the better error
	}
	changed := a.rename(top)
	if json.Unmarshal(top["text_config"], &text) == nil && text != nil && a.rename(text) {
		top["text_config"], _ = json.Marshal(text) // raw JSON always encodes
		changed = true
	}
	if changed = a.fillDefaults(top, text) || changed; !changed {
		return config
	}
	out, err := json.Marshal(top)
	if err != nil {
		return config
	}
	return out
}

// fillDefaults adds the keys that a configuration and its text_config lack, with the defaults of the model_type.
func (a Arch) fillDefaults(top, text map[string]json.RawMessage) (changed bool) {
	var name string
	if json.Unmarshal(top["model_type"], &name) != nil {
		return false
	}
	for key, value := range a.Defaults[name] {
		_, nested := text[key]
		if _, given := top[key]; !given && !nested {
			top[key], changed = json.RawMessage(value), true
		}
	}
	return changed
}

func (a Arch) rename(config map[string]json.RawMessage) (changed bool) {
	for i := 0; i+1 < len(a.Names); i += 2 {
		own, other := a.Names[i], a.Names[i+1]
		if v, ok := config[other]; ok {
			config[own], changed = v, true
		}
	}
	return changed
}

// replaced reports whether a configuration has a key under another name, too, which wins.
func (a Arch) replaced(key string, config map[string]json.RawMessage) bool {
	for i := 0; i+1 < len(a.Names); i += 2 {
		if _, ok := config[a.Names[i+1]]; ok && a.Names[i] == key {
			return true
		}
	}
	return false
}
