package arch

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Nearest describes a checkpoint of an unknown model type by the known type whose table its tensors fit best: one line
// with the type and what differs. It returns "" if none is near: if more than a quarter of the tensors differ.
//
// Equal tensors do not make equal models, which may scale, rotate or normalize differently.
func Nearest(config []byte, have []TensorInfo) string {
	best, least := "", len(have)/4+1
	var differs error
	// Of several types with the same tensors, the plainest.
	types := All()
	plainest := slices.IndexFunc(types, func(a Arch) bool { return a.ModelType == "llama" })
	types[0], types[plainest] = types[plainest], types[0]
	for _, a := range types {
		if a.DraftOnly {
			continue
		}
		m, err := a.Parse(asType(config, a))
		if err != nil {
			continue
		}
		_, err = m.Table().Check(have)
		if n := problems(err); n < least {
			best, least, differs = a.ModelType, n, err
		}
	}
	switch {
	case best == "":
		return ""
	case differs == nil:
		return fmt.Sprintf("its tensors have the names and shapes of %s", best)
	}
	return fmt.Sprintf("its tensors are nearest to those of %s, from which they differ: %v", best, differs)
}

// problems counts the tensors that a table does not fit.
func problems(err error) int {
	var table *TableError
	if errors.As(err, &table) {
		return len(table.Problems)
	}
	return 0
}

// asType returns a config.json that names another type. A config.json that is none is returned as it is.
func asType(config []byte, a Arch) []byte {
	all := map[string]json.RawMessage{}
	if json.Unmarshal(config, &all) != nil {
		return config
	}
	set := func(in map[string]json.RawMessage, key string, value any) {
		if text, err := json.Marshal(value); err == nil {
			in[key] = text
		}
	}
	set(all, "model_type", a.ModelType)
	set(all, "architectures", a.Architectures[:1])
	if text := (map[string]json.RawMessage{}); json.Unmarshal(all["text_config"], &text) == nil && len(text) > 0 {
		set(text, "model_type", a.ModelType)
		set(all, "text_config", text)
	}
	out, err := json.Marshal(all)
	if err != nil {
		return config
	}
	return out
}
