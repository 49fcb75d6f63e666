package disk

import (
	"errors"
	"fmt"

	"github.com/ingotml/ingot/internal/limits/place"
	"github.com/ingotml/ingot/manifest"
)

// ReadLimited is [place.ReadFile] for a file of a store. A larger file is a [manifest.ErrTooLarge].
func ReadLimited(path string, limit int64) ([]byte, error) {
	b, err := place.ReadFile(path, limit)
	if errors.Is(err, place.ErrTooLarge) {
		return nil, fmt.Errorf("%s has more than %d bytes: %w", path, limit, manifest.ErrTooLarge)
	}
	return b, err
}
