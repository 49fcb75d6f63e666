package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/ingotml/ingot/internal/limits/place"
)

// checked returns the engine if check finds nothing.
func (e *Engine) checked() (*Engine, error) {
	if err := e.check(); err != nil {
		return nil, err
	}
	return e, nil
}

// check returns an error if others could have written code that the engine loads, or if the bridge is not the one that
// was installed.
func (e *Engine) check() error {
	if err := place.TrustedTree(e.Dir); err != nil {
		return failf(ErrInvalid, "the engine in %s is not used: %w", e.Dir, err)
	}
	if e.Kernels != "" {
		err := place.TrustedTree(e.Kernels)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return failf(ErrInvalid, "kernels in %s are not used: %w", e.Kernels, err)
		}
	}
	sum, err := sumOf(e.Bridge)
	if err == nil && sum != e.Sum {
		err = fmt.Errorf("it is not the file that was installed; remove %s and run 'ingot engine install'", e.Dir)
	}
	if err != nil {
		return failf(ErrInvalid, "%s: %w", e.Bridge, err)
	}
	return nil
}

// sumOf returns the SHA-256 of a file.
func sumOf(path string) (string, error) {
	f, err := place.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
