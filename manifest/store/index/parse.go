package index

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/jsonread"
	"github.com/ingotml/ingot/manifest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Parse reads the text of an index.json. An index without a list of manifests is an error: as an empty store it would
// turn each blob into garbage. So is a key that occurs twice, also in another case, of which encoding/json takes the
// last.
func Parse(text []byte) (idx ocispec.Index, err error) {
	if err := checkKeys(text); err != nil {
		return idx, err
	}
	if err := json.Unmarshal(text, &idx); err != nil {
		return idx, err
	}
	switch {
	case idx.SchemaVersion != 2:
		return idx, fmt.Errorf("its schema version is %d, not 2", idx.SchemaVersion)
	case idx.MediaType != "" && idx.MediaType != ocispec.MediaTypeImageIndex && idx.MediaType != manifest.DockerList:
		return idx, fmt.Errorf("its media type is %q, not %s", manifest.Clip(idx.MediaType), ocispec.MediaTypeImageIndex)
	case idx.Manifests == nil:
		return idx, errors.New("it has no list of manifests")
	}
	return idx, nil
}

// checkKeys checks that no object has a key twice.
func checkKeys(text []byte) error {
	r := jsonread.New(text, jsonread.Options{Nesting: limits.ManifestNesting})
	if len(text) == 0 {
		return errors.New("it is empty")
	}
	if r.Peek() != '{' {
		return errors.New("it is not a JSON object")
	}
	if err := checkValue(&r); err != nil {
		return err
	}
	return r.End()
}

func checkValue(r *jsonread.Reader) error {
	switch r.Peek() {
	case '{':
		var keys []string
		return r.Object(func(key []byte) error {
			folded := strings.ToLower(strings.ToUpper(string(key))) // as encoding/json compares keys
			if slices.Contains(keys, folded) {
				return fmt.Errorf("key %q occurs twice", manifest.Clip(string(key)))
			}
			if len(keys) == maxKeys {
				return fmt.Errorf("an object has more than %d keys", maxKeys)
			}
			keys = append(keys, folded)
			return checkValue(r)
		})
	case '[':
		return r.Array(func(int) error { return checkValue(r) })
	}
	return r.Skip()
}

// maxKeys bounds the keys of an object, each of which is compared with the others. Descriptors have less than ten, and
// annotations are few.
const maxKeys = 1000
