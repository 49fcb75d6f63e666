// Package input reads the texts, token ids and pictures that arguments and prompts name.
package input

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/internal/limits/filekind"
	"github.com/ingotml/ingot/runtime/quality"
)

// Text reads the text of a comparison. An empty path means the built-in text.
func Text(path string) (string, error) {
	if path == "" {
		return quality.Text, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxText+1))
	switch {
	case err != nil:
		return "", err
	case len(b) > maxText:
		return "", fmt.Errorf("%s is larger than %s; use a shorter text", path, cli.Size(maxText))
	case filekind.Of(b, int64(len(b))).Kind == filekind.Pointer:
		return "", fmt.Errorf("%s: %s", path, filekind.Of(b, int64(len(b))).Wrong())
	case !utf8.Valid(b):
		return "", fmt.Errorf("%s is not UTF-8 text; convert it first", path)
	}
	return string(b), nil
}

// Texts reads texts of a calibration.
func Texts(paths []string) (texts []string, err error) {
	for _, path := range paths {
		text, err := Text(path)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// IDs reads a JSON array of token ids from a file, or from standard input for "-".
func IDs(ctx context.Context, a *cli.App, path string) ([]int32, error) {
	name, text, err := path, []byte(nil), error(nil)
	if path == "-" {
		name = "standard input"
		text, err = io.ReadAll(a.Stdin(ctx))
	} else {
		text, err = cli.Await(ctx, func() ([]byte, error) { return os.ReadFile(path) })
	}
	if err != nil {
		return nil, fmt.Errorf("read token ids: %w", err)
	}
	ids := []int32{}
	if err := json.Unmarshal(text, &ids); err != nil {
		return nil, fmt.Errorf("%s: want a JSON array of token ids: %w", name, err)
	}
	return ids, nil
}

// maxText bounds the text of --against in bytes. A text of this size takes days.
const maxText = 64 << 20
