package safetensors

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// shardPattern is how shards are numbered, from 1. The digits vary: DeepSeek writes model-00001-of-000163.
var shardPattern = regexp.MustCompile(`^(.+)-(\d{1,9})-of-(\d{1,9})\.safetensors$`)

// discover returns the names of the files that make up the model in a folder without an index, sorted.
func discover(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		// Dot files are leftovers of editors, downloads and archives (macOS puts ._NAME beside NAME).
		if !e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	chosen, err := choose(names)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return chosen, nil
}

// choose picks the model's files among the sorted names of a folder.
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

// checkShards checks that the numbered files among names are one set without gaps.
func checkShards(names []string) error {
	var first []string // the pattern's groups in the first shard: name, stem, number, count
	var count int
	have := make(map[int]string)
	for _, name := range names {
		m := shardPattern.FindStringSubmatch(name)
		if m == nil {
			continue
		}
		// The pattern allows no number that Atoi refuses.
		number, _ := strconv.Atoi(m[2])
		if first == nil {
			first = m
			count, _ = strconv.Atoi(m[3])
		}
		if m[1] != first[1] || m[3] != first[3] {
			return fmt.Errorf("%w: %s and %s are shards of two sets: keep one set, or add %s", ErrAmbiguous, first[0], name, indexName)
		}
		if number < 1 || number > count {
			return fmt.Errorf("%w: %s: the number is not in 1 to %d: add %s", ErrAmbiguous, name, count, indexName)
		}
		if twin := have[number]; twin != "" {
			return fmt.Errorf("%w: %s and %s have one number: keep one of them", ErrAmbiguous, twin, name)
		}
		have[number] = name
	}
	for i := 1; i <= count; i++ {
		if have[i] == "" {
			return fmt.Errorf("%w: %s-%0*d-of-%s%s is not there; fetch it", ErrIncomplete, first[1], len(first[2]), i, first[3], extension)
		}
	}
	return nil
}

// noWeights says what the folder has instead of weights.
func noWeights(names []string) error {
	// In the order of what helps most.
	for _, hint := range []struct{ pattern, text string }{
		{"consolidated*" + extension, "only Mistral's own layout was found: fetch the files model*" + extension},
		{"pytorch_model*.bin", pickleHint},
		{"model*.pth", pickleHint},
		{"*.gguf", "GGUF is not read: use the safetensors checkpoint that it was made from"},
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
	return fmt.Errorf("%w: want model%s, or shards and %s", ErrNoWeights, extension, indexName)
}

const pickleHint = "PyTorch pickles run code when they are read: convert to safetensors first"
