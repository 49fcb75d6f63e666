package arch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/internal/limits/clip"
)

// maxKeys bounds a list of keys in a message, in characters.
const maxKeys = 400

// Nearest describes a checkpoint of an unknown model type by the known type whose table its tensors fit best: one line
// with the type, what differs, and how to import it. It returns "" if none is near: if more than a quarter of the
// tensors differ. Of several types with the same tensors it is the one that reads most of the configuration, and of
// these the plainest.
//
// Equal tensors do not make equal models, which may scale, rotate or normalize differently. So the type is suggested
// only if it reads every key that could change the computation; else the line names the others.
func Nearest(config []byte, have []table.TensorInfo) string {
	type candidate struct {
		Arch
		config []byte
		model  Model
		err    error
	}
	var best []candidate
	least := len(have) / 4
	for _, a := range plainestFirst() {
		c := candidate{Arch: a, config: asType(config, a, a.ModelType)}
		if c.model, c.err = a.Parse(c.config); c.err != nil {
			continue
		}
		_, c.err = c.model.Table().Check(have)
		switch n := problems(c.err); {
		case n < least:
			best, least = []candidate{c}, n
		case n == least:
			best = append(best, c)
		}
	}
	if len(best) == 0 || len(have) == 0 {
		return ""
	}
	nearest, decisive := best[0], unread(best[0].config, best[0].Arch, best[0].model)
	for _, c := range best[1:] {
		if keys := unread(c.config, c.Arch, c.model); len(keys) < len(decisive) {
			nearest, decisive = c, keys
		}
	}
	name := nearest.ModelType
	if nearest.err == nil && len(decisive) > 0 {
		return fmt.Sprintf("its tensors have the names and shapes of %s, but %s does not read these keys of config.json, "+
			"so that it would compute something else if they count: %s", name, name,
			clip.Line(strings.Join(decisive, ", "), maxKeys))
	}
	if nearest.err == nil {
		return fmt.Sprintf("its tensors have the names and shapes of %s; import it with `--as %s`, and compare its logits "+
			"with its own code's: `ingot verify --reference`", name, name)
	}
	return fmt.Sprintf("its tensors are nearest to those of %s, from which they differ, so `--as %s` would be refused: %v",
		name, name, nearest.err)
}

// plainestFirst returns the types that run by themselves, the plainest first.
func plainestFirst() []Arch {
	types := slices.DeleteFunc(All(), func(a Arch) bool { return a.DraftOnly })
	plainest := slices.IndexFunc(types, func(a Arch) bool { return a.Plainest })
	return slices.Concat(types[plainest:plainest+1], types[:plainest], types[plainest+1:])
}

// problems counts the tensors that a table does not fit.
func problems(err error) int {
	var table *table.TableError
	if errors.As(err, &table) {
		return len(table.Problems)
	}
	return 0
}
