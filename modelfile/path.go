package modelfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Resolve returns the path that a value of FROM, ADAPTER or DRAFT refers to. ~ and ~/x are in the user's home. Relative
// paths are relative to dir, the folder of the Modelfile.
func Resolve(dir, value string) (string, error) {
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
