package arch

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/internal/limits/pyjson"
)

// Unread returns the keys of a config.json that could change the computation and that its type does not read. They are
// neither known to have no influence, nor null, false or empty.
func Unread(config []byte) []string {
	m, err := Detect(config)
	if err != nil {
		return nil
	}
	return unread(config, byName(m.Facts().ModelType), m)
}

// few is the number of keys that are tried one by one. More are tried together first.
const few = 64

// maxReadings bounds the readings of a configuration. Published ones take some hundred.
const maxReadings = 1000

// unread returns the keys of a config.json, and of its text_config, that have no influence on the model m made of it:
// without the key, and with a value that no key can have, the model is the same. Keys that are idle, null or false are
// left out, as are empty lists and the number 0.
func unread(config []byte, a Arch, m Model) []string {
	t := trial{arch: a, model: m}
	_ = json.Unmarshal(pyjson.Plain(config), &t.all) // the caller has parsed it
	_ = json.Unmarshal(t.all["text_config"], &t.text)
	keys := t.keys()
	// Large values first: those that are not read are left out of all further readings.
	slices.SortStableFunc(keys, func(a, b triedKey) int { return cmp.Compare(len(b.value()), len(a.value())) })
	out := t.unused(keys)
	slices.SortFunc(out, func(a, b string) int {
		return cmp.Or(strings.Count(a, ".")-strings.Count(b, "."), strings.Compare(a, b))
	})
	return out
}

// trial is a configuration whose keys are tried.
type trial struct {
	arch      Arch
	model     Model
	all, text map[string]json.RawMessage
	readings  int
}

// triedKey is a key of a configuration or of its text_config.
type triedKey struct {
	in        map[string]json.RawMessage
	key, path string
}

func (k triedKey) value() json.RawMessage { return k.in[k.key] }

// keys returns the keys to try, and leaves out others that have no influence.
func (t *trial) keys() (list []triedKey) {
	var others []triedKey
	add := func(in map[string]json.RawMessage, prefix string) {
		for _, key := range config.SortedKeys(in) {
			k := triedKey{in, key, prefix + key}
			switch {
			case t.arch.replaced(key, in):
			case t.arch.isIdle(key) || t.arch.isFixed(key) || isNothing(k.value()):
				others = append(others, k)
			default:
				list = append(list, k)
			}
		}
	}
	add(t.all, "")
	add(t.text, "text_config.")
	if len(others) > few {
		t.unused(others)
	}
	return list
}

// unused removes the keys without influence from the configuration and returns their paths. Of many keys it tries all
// at once, then those of each half, and single ones last, when the configuration has become small: so it takes few
// readings of a configuration with very many keys.
func (t *trial) unused(keys []triedKey) (paths []string) {
	groups := [][]triedKey{keys}
	if len(keys) <= few {
		groups = slices.Collect(slices.Chunk(keys, 1))
	}
	for ; len(groups) > 0 && t.readings < maxReadings; groups = groups[1:] {
		group := groups[0]
		switch half := len(group) / 2; {
		case t.leaveOut(group):
			for _, k := range group {
				paths = append(paths, k.path)
			}
		case len(group) > few:
			groups = append(groups, group[:half], group[half:])
		case len(group) > 1:
			groups = slices.AppendSeq(groups, slices.Chunk(group, 1))
		}
	}
	return paths
}

// leaveOut removes keys, if they have no influence, and reports that.
func (t *trial) leaveOut(keys []triedKey) bool {
	values := make([]json.RawMessage, len(keys))
	for i, k := range keys {
		values[i], k.in[k.key] = k.value(), json.RawMessage("[[]]")
	}
	unused := t.same()
	for _, k := range keys {
		delete(k.in, k.key)
	}
	if unused && t.same() {
		return true
	}
	for i, k := range keys {
		k.in[k.key] = values[i]
	}
	return false
}

// same reports whether the configuration as it is now is the same model's.
func (t *trial) same() bool {
	t.readings++
	if t.text != nil {
		t.all["text_config"], _ = json.Marshal(t.text) // raw JSON always encodes
	}
	edited, err := json.Marshal(t.all)
	if err != nil {
		return false
	}
	other, err := t.arch.Parse(edited)
	return err == nil && reflect.DeepEqual(other, t.model)
}

// isNothing reports whether a value says that there is none of what its key names.
func isNothing(value json.RawMessage) bool {
	return slices.Contains([]string{"null", "false", "0", "0.0", "[]", "{}", `""`}, string(bytes.TrimSpace(value)))
}
