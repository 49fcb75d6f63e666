package safetensors

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ingotml/ingot/limits/filekind"
	"github.com/ingotml/ingot/limits/pyjson"
)

// indexName is the file that maps tensors to shards. https://huggingface.co/docs/transformers/big_models
const indexName = "model.safetensors.index.json"

const extension = ".safetensors"

// maxIndexSize limits the index in bytes, like a header.
const maxIndexSize = MaxHeaderSize

// readIndex returns the weight_map of a folder's index, from tensor name to shard name.
func readIndex(folder Folder) (map[string]string, error) {
	path := folder.Path(indexName)
	file, err := folder.Open(indexName)
	if errors.Is(err, errNotRegular) {
		return nil, fmt.Errorf("%s: %w: %w", path, ErrIndex, errNotRegular)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxIndexSize+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxIndexSize {
		return nil, fmt.Errorf("%s: %w: more than %d bytes", path, ErrIndex, maxIndexSize)
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

// parseIndex parses weight_map and ignores other keys, which are informational.
func parseIndex(text []byte) (map[string]string, error) {
	r, err := newJSONReader(text, ErrIndex)
	if err != nil {
		return nil, err
	}
	var weights map[string]string
	err = r.Object(func(key []byte) error {
		if string(key) != "weight_map" {
			return r.skip()
		}
		if weights != nil {
			return fmt.Errorf("%w: duplicate key %q", ErrIndex, key)
		}
		weights = make(map[string]string)
		return parseWeightMap(r, weights)
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

func parseWeightMap(r *jsonReader, weights map[string]string) error {
	return r.Object(func(key []byte) error {
		tensor := string(key)
		shard, err := r.text()
		switch _, seen := weights[tensor]; {
		case err != nil:
		case seen:
			err = fmt.Errorf("%w: %w: it occurs twice in the weight_map", ErrIndex, ErrDuplicate)
		case !isShardName(shard):
			err = fmt.Errorf("%w: shard %s is not a plain file name", ErrIndex, quote(shard))
		default:
			if err = checkName(tensor); err != nil {
				err = fmt.Errorf("%w: %w", ErrIndex, err)
			}
		}
		if err != nil {
			return fmt.Errorf("tensor %s: %w", quote(tensor), err)
		}
		weights[tensor] = shard
		return nil
	})
}

// isShardName reports whether a name from an index can safely be joined to the folder's path: it cannot leave the
// folder, or name a stream, on any operating system. Only names that the folder lists are opened.
func isShardName(name string) bool {
	return name != "" && name[0] != '.' && !strings.ContainsAny(name, `/\:`) &&
		!strings.ContainsFunc(name, func(c rune) bool { return c < 0x20 || c == 0x7f })
}
