package modelfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Resolve gives the path that a value of FROM, ADAPTER or DRAFT means in a Modelfile that lies in dir: absolute ones as
// they are, ~ and ~/x in the user's home, others relative to dir.
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
