package manifest

import (
	"fmt"
	"io"
	"os"
)

// readLimited reads a whole file of at most limit bytes. A larger file is an [ErrTooLarge].
func readLimited(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes: %w", path, limit, ErrTooLarge)
	}
	return b, nil
}
