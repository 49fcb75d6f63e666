package modelfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ingotml/ingot/internal/limits/clip"
)

// maxPath bounds a path in bytes, as Linux does. A system's own error about a longer one has all of it.
const maxPath = 4096

// Resolve returns the path that a value of FROM, ADAPTER or DRAFT refers to. ~ and ~/x are in the user's home. Relative
// paths are relative to dir, the folder of the Modelfile.
func Resolve(dir, value string) (string, error) {
	if len(value) > maxPath {
		return "", fmt.Errorf("%s: a path has at most %d bytes", clip.Line(value, maxQuoted), maxPath)
	}
	if value == "~" || strings.HasPrefix(value, "~/") || strings.HasPrefix(value, `~`+string(filepath.Separator)) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("%s: %w", value, err)
		}
		return filepath.Join(home, value[1:]), nil
	}
	if filepath.IsAbs(value) {
		return filepath.Clean(value), nil
	}
	return filepath.Join(dir, value), nil
}
