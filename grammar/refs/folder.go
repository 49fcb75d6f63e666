package refs

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/ingotml/ingot/internal/limits/place"
)

// maxFile bounds a schema, which is parsed into memory.
const maxFile = 64 << 20

// Folder reads the schemas of a folder: each .json file by the address of the folder, which
// ends with a slash or is empty, and the file's path in it; and by its own $id.
func Folder(folder, address string) (map[string][]byte, error) {
	refs := map[string][]byte{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		source, err := place.ReadFile(path, maxFile)
		if err != nil {
			return err
		}
		in, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		refs[address+filepath.ToSlash(in)] = source
		var schema any
		if err := json.Unmarshal(source, &schema); err != nil {
			return fmt.Errorf("%s is not JSON: %w", path, err)
		}
		fields, _ := schema.(map[string]any) // true and false are schemas too
		for _, key := range []string{"$id", "id"} {
			if id, ok := fields[key].(string); ok && strings.Contains(id, ":") {
				refs[strings.TrimSuffix(id, "#")] = source
			}
		}
		return nil
	})
	return refs, err
}
