package safetensors

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/internal/limits/filekind"
)

// shardPattern matches the names of shards, which are numbered from 1. The number of digits varies: DeepSeek writes
// model-00001-of-000163.
var shardPattern = regexp.MustCompile(`^(.+)-(\d{1,9})-of-(\d{1,9})(\.[^.]*)?$`)

// discover returns the sorted names of the model's files among a folder's entries, which have no index.
func discover(folder Folder, entries []fs.DirEntry) ([]string, error) {
	names := WeightFiles(folder, entries)
	if len(names) == 0 {
		return nil, noWeights(folder, regular(entries))
	}
	return choose(names)
}

// regular returns the sorted names of a folder's files. Dot files are left by editors, downloads and archives (macOS
// puts ._NAME beside NAME).
func regular(entries []fs.DirEntry) []string {
	var names []string
	for _, e := range entries {
		if !e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names
}

// WeightFiles returns the sorted names of the files that may be a model's weights: those that are named so, because a
// damaged one is an error and not another kind of file, and if there are none, those that are safetensors files under
// other names. Files of Mistral's own layout and adapters are neither.
func WeightFiles(folder Folder, entries []fs.DirEntry) []string {
	var named, others []string
	for _, name := range regular(entries) {
		switch {
		case strings.HasPrefix(name, "consolidated"), strings.HasPrefix(name, "adapter"):
		case hasExtension(name):
			named = append(named, name)
		default:
			others = append(others, name)
		}
	}
	if _, local := folder.(Dir); local { // elsewhere, it would take a round trip for each shard
		named = slices.DeleteFunc(named, func(name string) bool { return kindIn(folder, name) == filekind.GGUF })
	}
	if len(named) > 0 {
		return named
	}
	for _, name := range readable(folder, others) {
		if kindIn(folder, name) == filekind.Safetensors {
			named = append(named, name)
		}
	}
	return named
}

// hasExtension reports whether a file is named as safetensors files are.
func hasExtension(name string) bool { return strings.EqualFold(filepath.Ext(name), extension) }

// kindIn returns the kind of a file; that of one that cannot be read is not known.
func kindIn(folder Folder, name string) filekind.Kind {
	found, err := KindOf(folder, name)
	if err != nil {
		return filekind.Unknown
	}
	return found.Kind
}

// maxKinds bounds the files whose kinds are read to find weights.
const maxKinds = 256

// readable returns the names of files whose first bytes may be read to find weights: of a folder that is not local, not
// those that are small or of another kind by their names.
func readable(folder Folder, names []string) []string {
	if _, local := folder.(Dir); !local {
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			switch strings.ToLower(filepath.Ext(name)) {
			case ".json", ".md", ".txt", ".jinja", ".py", ".yaml", ".png", ".jpg", ".gif", ".svg", ".gguf", ".model":
				return true
			}
			return false
		})
	}
	return names[:min(len(names), maxKinds)]
}

// choose selects the model's files from the sorted names of a folder's weights.
func choose(names []string) ([]string, error) {
	var model []string
	whole := "" // model.safetensors
	for _, name := range names {
		if strings.HasPrefix(name, "model") {
			model = append(model, name)
		}
		if name == "model"+filepath.Ext(name) {
			whole = name
		}
	}
	if len(model) > 0 {
		if len(model) > 1 && whole != "" {
			return nil, fmt.Errorf("%w: %s beside %s: keep one of them, or add %s",
				ErrAmbiguous, whole, firstExcept(model, whole), indexName)
		}
		return model, checkShards(model)
	}
	if len(names) > 1 {
		for _, name := range names {
			if !shardPattern.MatchString(name) {
				return nil, fmt.Errorf("%w: %s and %s: keep one and name it model%s, or add %s",
					ErrAmbiguous, name, firstExcept(names, name), extension, indexName)
			}
		}
	}
	return names, checkShards(names)
}

func firstExcept(names []string, except string) string {
	for _, name := range names {
		if name != except {
			return name
		}
	}
	return ""
}

// checkShards checks that the shards among names are a single complete set.
func checkShards(names []string) error {
	var first []string // submatches of the first shard: name, stem, number, count
	var count int
	have := make(map[int]string)
	for _, name := range names {
		m := shardPattern.FindStringSubmatch(name)
		if m == nil {
			continue
		}
		// The pattern only matches numbers that Atoi accepts.
		number, _ := strconv.Atoi(m[2])
		if first == nil {
			first = m
			count, _ = strconv.Atoi(m[3])
		}
		if m[1] != first[1] || m[3] != first[3] || m[4] != first[4] {
			return fmt.Errorf("%w: %s and %s belong to different sets of shards: keep one set, or add %s",
				ErrAmbiguous, first[0], name, indexName)
		}
		if number < 1 || number > count {
			return fmt.Errorf("%w: %s: the number is not between 1 and %d: add %s", ErrAmbiguous, name, count, indexName)
		}
		if twin := have[number]; twin != "" {
			return fmt.Errorf("%w: %s and %s have the same number: keep one of them", ErrAmbiguous, twin, name)
		}
		have[number] = name
	}
	for i := 1; i <= count; i++ {
		if have[i] == "" {
			return fmt.Errorf("%w: %s-%0*d-of-%s%s is missing; download it",
				ErrIncomplete, first[1], len(first[2]), i, first[3], first[4])
		}
	}
	return nil
}

// noWeights explains what the folder contains instead of weights.
func noWeights(folder Folder, names []string) error {
	kinds := map[string]filekind.Kind{}
	for _, name := range readable(folder, names) {
		kinds[name] = kindIn(folder, name)
	}
	has := func(want ...filekind.Kind) func(string) bool {
		return func(name string) bool { return slices.Contains(want, kinds[name]) }
	}
	begins := func(prefix string) func(string) bool {
		return func(name string) bool { return strings.HasPrefix(name, prefix) && hasExtension(name) }
	}
	// The most helpful hints come first.
	for _, hint := range []struct {
		is   func(name string) bool
		text string
	}{
		{begins("consolidated"), "only Mistral's own layout was found: download the files model*" + extension},
		{has(filekind.Pickle), "a PyTorch pickle runs code when it is read: use the model's safetensors checkpoint, or " +
			"convert it on a machine where you trust it, with save_pretrained(..., safe_serialization=True) of transformers"},
		{has(filekind.GGUF), "open the GGUF file itself"},
		{begins("adapter"), "an adapter is not a model: merge it into its base model first"},
		{has(filekind.GGML, filekind.HDF5, filekind.Zip, filekind.NumPy, filekind.Archive), ""},
		{has(filekind.Pointer, filekind.Page, filekind.Zeros), ""},
	} {
		for _, name := range names {
			if !hint.is(name) {
				continue
			}
			text := hint.text
			if text == "" {
				text = filekind.Found{Kind: kinds[name], Size: -1}.Wrong(filekind.Safetensors)
			}
			return fmt.Errorf("%w: found %s: %s", ErrNoWeights, name, text)
		}
	}
	return fmt.Errorf("%w: expected model%s, or shards and %s", ErrNoWeights, extension, indexName)
}
