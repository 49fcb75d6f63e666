package disk

import (
	"fmt"
	"io"

	"github.com/ingotml/ingot/limits/place"
	"github.com/ingotml/ingot/manifest"
)

// ReadLimited reads a whole file of at most limit bytes. A larger file is a [manifest.ErrTooLarge].
func ReadLimited(path string, limit int64) ([]byte, error) {
	f, err := place.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes: %w", path, limit, manifest.ErrTooLarge)
	}
	return b, nil
}
