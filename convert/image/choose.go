package image

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/internal/limits/filekind"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/safetensors"
)

// model returns the folder of the image that holds the model, and the weights that are in folders below it. Among
// several, it is the one that all others are below or deeper than: a draft, a pooling layer or a projector beside.
func (f *folder) model() (root string, beside map[string]string, err error) {
	found := f.candidates()
	var best []string
	for _, dir := range slices.Sorted(maps.Keys(found)) {
		if len(best) > 0 && depth(dir) < depth(best[0]) {
			best = nil
		}
		if len(best) == 0 || depth(dir) == depth(best[0]) {
			best = append(best, dir)
		}
	}
	switch {
	case len(best) > 1:
		return "", nil, fmt.Errorf("%s: %w: it has several models, in the folders %s; %s", f.tree.image.Name,
			safetensors.ErrAmbiguous, manifest.Clip(strings.Join(best, ", ")), f.Remedy())
	case len(best) == 0 && f.has("model_index.json"), len(best) == 0 && f.has(source.ConfigName):
		return ".", nil, nil // the source says what it lacks
	case len(best) == 0:
		return "", nil, fmt.Errorf("%s: %w", f.tree.image.Name, f.tree.notModel())
	}
	beside = map[string]string{}
	for _, at := range found[best[0]] {
		if path.Dir(at) == best[0] {
			continue
		}
		if _, twice := beside[path.Base(at)]; twice {
			return "", nil, fmt.Errorf("%s: %w: its weights are in several folders, under the same names; %s",
				f.tree.image.Name, safetensors.ErrAmbiguous, f.Remedy())
		}
		beside[path.Base(at)] = at
	}
	return best[0], beside, nil
}

func depth(dir string) int {
	if dir == "." {
		return 0
	}
	return 1 + strings.Count(dir, "/")
}

// has reports whether the image has a file.
func (f *folder) has(name string) bool {
	_, ok := f.tree.files[name]
	return ok
}

// candidates finds the weights by their content, and their folders. Weights without a configuration beside them belong
// to the nearest folder above that has one.
func (f *folder) candidates() (weights map[string][]string) {
	weights = map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(f.tree.files)) {
		dir := path.Dir(name)
		switch kind, err := safetensors.KindOf(f, name); {
		case err != nil:
			continue
		case kind.Kind == filekind.GGUF || source.NamesGGUF(name):
			if role, err := source.RoleIn(f, name); err == nil && role != "" {
				continue
			}
		case kind.Kind == filekind.Safetensors || strings.EqualFold(path.Ext(name), ".safetensors"):
			if f.has(path.Join(dir, "adapter_config.json")) && !f.has(path.Join(dir, source.ConfigName)) {
				continue
			}
			dir = f.owner(dir)
		default:
			continue
		}
		weights[dir] = append(weights[dir], name)
	}
	return weights
}

// owner returns the nearest folder at or above one that has a configuration, or else the folder itself.
func (f *folder) owner(dir string) string {
	for at := dir; ; at = path.Dir(at) {
		if f.has(path.Join(at, source.ConfigName)) {
			return at
		}
		if at == "." {
			return dir
		}
	}
}

// notModel says what the image holds instead of a model.
func (t *tree) notModel() error {
	const most = 3
	names := slices.Sorted(maps.Keys(t.files))
	more := ""
	if len(names) > most {
		more = fmt.Sprintf(" and %d more files", len(names)-most)
		names = names[:most]
	}
	return &manifest.UnknownManifestError{
		What:   "files without a model's weights in safetensors or GGUF: " + manifest.Clip(strings.Join(names, ", ")) + more,
		Remedy: "`ingot extract` takes them out",
	}
}
