package safetensors

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/filekind"
	"github.com/ingotml/ingot/internal/limits/place"
	"github.com/ingotml/ingot/internal/limits/pyjson"
)

// indexName is the file that maps tensors to shards. https://huggingface.co/docs/transformers/big_models
const indexName = "model.safetensors.index.json"

const extension = ".safetensors"

// maxIndexSize limits the index in bytes, like a header.
const maxIndexSize = MaxHeaderSize

// placed is a tensor of an index and the shard that has it.
type placed struct{ tensor, shard string }

// readIndex returns the weight_map of a folder's index, sorted by the tensors' names.
func readIndex(folder Folder) ([]placed, error) {
	path := folder.Path(indexName)
	text, err := ReadSmall(folder, indexName, maxIndexSize)
	switch {
	case errors.Is(err, place.ErrNotRegular):
		return nil, fmt.Errorf("%s: %w: %w", path, ErrIndex, place.ErrNotRegular)
	case errors.Is(err, ErrTooLong):
		return nil, fmt.Errorf("%s: %w: %w", path, ErrIndex, err)
	case err != nil:
		return nil, err
	}
	if wrong := filekind.Of(text, int64(len(text))).Wrong(filekind.JSON); wrong != "" {
		return nil, fmt.Errorf("%s: %w: %s", path, ErrIndex, wrong)
	}
	weights, err := parseIndex(pyjson.Plain(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return weights, nil
}

// parseIndex parses weight_map and ignores other keys, which are informational. What it returns does not refer to the
// text.
func parseIndex(text []byte) ([]placed, error) {
	r, err := newJSONReader(text, ErrIndex)
	if err != nil {
		return nil, err
	}
	var weights []placed
	seen := false
	err = r.Object(func(key []byte) (err error) {
		if string(key) != "weight_map" {
			return r.skip()
		}
		if seen {
			return fmt.Errorf("%w: duplicate key %q", ErrIndex, key)
		}
		seen = true
		weights, err = parseWeightMap(r)
		return err
	})
	if err == nil {
		err = r.End()
	}
	if err == nil && len(weights) == 0 {
		err = fmt.Errorf("%w: weight_map is absent or empty", ErrIndex)
	}
	if err != nil {
		return nil, err
	}
	return weights, nil
}

func parseWeightMap(r *jsonReader) ([]placed, error) {
	// Each entry has four quotes. Growing the list would take as much again.
	weights := make([]placed, 0, min(bytes.Count(r.Text[r.Pos:], []byte{'"'})/4, limits.Tensors))
	shards := map[string]string{} // one text for all tensors of a shard
	err := r.Object(func(key []byte) error {
		tensor := string(key)
		name, err := r.Str()
		shard, known := shards[string(name)]
		if err == nil && !known {
			shard = string(name)
			shards[shard] = shard
		}
		switch {
		case err != nil:
		case len(weights) == limits.Tensors:
			return fmt.Errorf("%w: more than %d tensors", ErrIndex, limits.Tensors)
		case !known && !isShardName(shard):
			err = fmt.Errorf("%w: shard %s is not a plain file name", ErrIndex, quote(shard))
		default:
			if err = checkName(tensor); err != nil {
				err = fmt.Errorf("%w: %w", ErrIndex, err)
			}
		}
		if err != nil {
			return fmt.Errorf("tensor %s: %w", quote(tensor), err)
		}
		weights = append(weights, placed{tensor, shard})
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(weights, func(a, b placed) int { return cmp.Compare(a.tensor, b.tensor) })
	for i := 1; i < len(weights); i++ {
		if name := weights[i].tensor; name == weights[i-1].tensor {
			return nil, fmt.Errorf("tensor %s: %w: %w: it occurs twice in the weight_map", quote(name), ErrIndex, ErrDuplicate)
		}
	}
	return weights, nil
}

// isShardName reports whether a name from an index can safely be joined to the folder's path: it cannot leave the
// folder, or name a stream, on any operating system. Only names that the folder lists are opened.
func isShardName(name string) bool {
	return name != "" && name[0] != '.' && !strings.ContainsAny(name, `/\:`) &&
		!strings.ContainsFunc(name, func(c rune) bool { return c < 0x20 || c == 0x7f })
}
