package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/internal/limits/clip"
	"github.com/ingotml/ingot/internal/limits/near"
	"github.com/ingotml/ingot/internal/limits/pyjson"
)

// Types returns the values of model_type that [Detect] accepts, sorted.
func Types() []string {
	var out []string
	for _, a := range known {
		out = append(append(out, a.ModelType), a.Aliases...)
	}
	slices.Sort(out)
	return out
}

// CheckType returns an error that wraps [ErrUnknownArchitecture] and names similar types if modelType is none of
// [Types].
func CheckType(modelType string) error {
	if slices.Contains(Types(), modelType) {
		return nil
	}
	return fmt.Errorf("model type %q: %w (%s)", clip.Line(modelType, config.MaxQuoted), ErrUnknownArchitecture,
		suggestions(modelType, Types(), typeList))
}

// suggestions says which of the types have a name like this one, and where all of them are listed.
func suggestions(modelType string, types []string, where string) string {
	text := fmt.Sprintf("%s lists the %d known types", where, len(types))
	if names := near.Names(strings.ToLower(clip.Line(modelType, config.MaxQuoted)), types); len(names) > 0 {
		text = "similar: " + strings.Join(names, ", ") + "; " + text
	}
	return text
}

// typeList is where users find all of Types.
const typeList = "`ingot create --help`"

// Retyped is a config.json that is read as one of another type than it declares.
type Retyped struct {
	Model  Model
	Config []byte // the same text, except that it declares the type
	// Declared is what the configuration declared, in words; "" if it was the type already, and nothing has changed.
	Declared string
	// Known reports whether the declared type is a known one, which would have been imported.
	Known bool
	// Unread are keys without influence on Model: it does not read them, or not with their other values.
	Unread []string
}

// DetectAs parses a config.json as one of modelType, one of [Types], whatever it declares.
func DetectAs(data []byte, modelType string) (Retyped, error) {
	if err := CheckType(modelType); err != nil {
		return Retyped{}, err
	}
	o, err := config.Parse(data)
	if err != nil {
		return Retyped{}, err
	}
	declared, classes := o.String("model_type", ""), o.Strings("architectures")
	if err := o.Failed(); err != nil {
		return Retyped{}, err
	}
	m, err := Detect(data)
	if err == nil && declared == modelType {
		return Retyped{Model: m, Config: data}, nil
	}
	r := Retyped{
		Declared: fmt.Sprintf("model_type %q, architectures %q", clip.Line(declared, config.MaxQuoted),
			config.ClipAll(classes)),
		Known: !errors.Is(err, ErrUnknownArchitecture),
	}
	a := byName(modelType)
	r.Config = asType(pyjson.Plain(data), a, modelType)
	if r.Model, err = a.Parse(r.Config); err != nil {
		return Retyped{}, fmt.Errorf("%w (read as %s)", err, modelType)
	}
	r.Unread = unread(r.Config, a, r.Model)
	return r, nil
}

// byName returns the type of a name that Types lists.
func byName(modelType string) Arch {
	return known[slices.IndexFunc(known, func(a Arch) bool { return a.goesBy(modelType) })]
}

// class returns the class of a model_type: gemma3_text has Gemma3ForCausalLM.
func (a Arch) class(modelType string) string {
	plain := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }
	stem, isText := strings.CutSuffix(modelType, "_text")
	for _, c := range a.Architectures {
		if strings.HasPrefix(plain(c), plain(stem)+"for") && (!isText || strings.HasSuffix(c, "ForCausalLM")) {
			return c
		}
	}
	return a.Architectures[0]
}

// asType returns a config.json that declares a type. A text that is not an object is returned as it is. text_config
// stays as it is, because its model_type may say which variant of a multimodal type it is.
func asType(config []byte, a Arch, modelType string) []byte {
	class, _ := json.Marshal([]string{a.class(modelType)}) // strings always encode
	name, _ := json.Marshal(modelType)
	return setKeys(config, map[string][]byte{"model_type": name, "architectures": class})
}

// setKeys replaces the values of an object's keys, and puts keys that it lacks at its beginning. All other bytes stay
// the same.
func setKeys(object []byte, values map[string][]byte) []byte {
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return object
	}
	begin := d.InputOffset()
	var out []byte
	at, seen, empty := begin, map[string]bool{}, !d.More()
	for d.More() {
		t, err := d.Token()
		key, ok := t.(string)
		var value json.RawMessage
		if err != nil || !ok || d.Decode(&value) != nil {
			return object
		}
		if v, set := values[key]; set {
			end := d.InputOffset()
			out = append(append(out, object[at:end-int64(len(value))]...), v...)
			at, seen[key] = end, true
		}
	}
	if _, err := d.Token(); err != nil {
		return object
	}
	out = append(out, object[at:]...)
	var lacking []byte
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if !seen[key] {
			lacking = append(append(append(lacking, '"'), key...), `": `...)
			lacking = append(append(lacking, values[key]...), ", "...)
		}
	}
	if empty {
		lacking = bytes.TrimSuffix(lacking, []byte(", "))
	}
	return slices.Concat(object[:begin], lacking, out)
}
