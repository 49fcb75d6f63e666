package arch

import (
	"encoding/json"

	"github.com/ingotml/ingot/limits/pyjson"
)

// ownNames gives keys that have other names in a configuration the names that the type reads. If it has both, the other
// name wins, as in transformers. The keys stay under their other names, too.
func (a Arch) ownNames(config []byte) []byte {
	if len(a.Names) == 0 {
		return config
	}
	var top, text map[string]json.RawMessage
	if json.Unmarshal(pyjson.Plain(config), &top) != nil {
		return config // the parser has the better error
	}
	changed := a.rename(top)
	if json.Unmarshal(top["text_config"], &text) == nil && a.rename(text) {
		top["text_config"], _ = json.Marshal(text) // raw JSON always encodes
		changed = true
	}
	if !changed {
		return config
	}
	out, err := json.Marshal(top)
	if err != nil {
		return config
	}
	return out
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
