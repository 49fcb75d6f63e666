package safetensors

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// shardPattern matches the names of shards, which are numbered from 1. The number of digits varies: DeepSeek writes
// model-00001-of-000163.
var shardPattern = regexp.MustCompile(`^(.+)-(\d{1,9})-of-(\d{1,9})\.safetensors$`)

// discover returns the sorted names of the model's files among a folder's entries, which have no index.
func discover(entries []fs.DirEntry) ([]string, error) {
	var names []string
	for _, e := range entries {
		// Dot files are left by editors, downloads and archives (macOS puts ._NAME beside NAME).
		if !e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return choose(names)
}

// choose selects the model's files from the sorted names in a folder.
func choose(names []string) ([]string, error) {
	var model, other []string
	for _, name := range names {
		switch {
		case !strings.HasSuffix(name, extension):
		case strings.HasPrefix(name, "model"):
			model = append(model, name)
		case !strings.HasPrefix(name, "consolidated") && !strings.HasPrefix(name, "adapter"):
			other = append(other, name)
		}
	}
	if len(model) > 0 {
		if len(model) > 1 && slices.Contains(model, "model"+extension) {
			return nil, fmt.Errorf("%w: model%s beside %s: keep one of them, or add %s",
				ErrAmbiguous, extension, firstExcept(model, "model"+extension), indexName)
		}
		return model, checkShards(model)
	}
	if len(other) == 0 {
		return nil, noWeights(names)
	}
	if len(other) > 1 {
		for _, name := range other {
			if !shardPattern.MatchString(name) {
				return nil, fmt.Errorf("%w: %s and %s: keep one and name it model%s, or add %s",
					ErrAmbiguous, name, firstExcept(other, name), extension, indexName)
			}
		}
	}
	return other, checkShards(other)
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
		if m[1] != first[1] || m[3] != first[3] {
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
				ErrIncomplete, first[1], len(first[2]), i, first[3], extension)
		}
	}
	return nil
}

// noWeights explains what the folder contains instead of weights.
func noWeights(names []string) error {
	// The most helpful hints come first.
	for _, hint := range []struct{ pattern, text string }{
		{"consolidated*" + extension, "only Mistral's own layout was found: download the files model*" + extension},
		{"pytorch_model*.bin", pickleHint},
		{"model*.pth", pickleHint},
		{"*.gguf", "open the GGUF file itself"},
		{"adapter*" + extension, "an adapter is not a model: merge it into its base model first"},
		{"*.pt", pickleHint},
		{"*.pth", pickleHint},
		{"*.ckpt", pickleHint},
		{"*.bin", pickleHint},
	} {
		for _, name := range names {
			if ok, _ := filepath.Match(hint.pattern, name); ok {
				return fmt.Errorf("%w: found %s: %s", ErrNoWeights, name, hint.text)
			}
		}
	}
	return fmt.Errorf("%w: expected model%s, or shards and %s", ErrNoWeights, extension, indexName)
}

const pickleHint = "loading a PyTorch pickle executes code: convert it to safetensors first"
