package source

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/ingotml/ingot/convert/internal/encode"
	"github.com/ingotml/ingot/internal/limits/pyjson"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/safetensors"
)

// ModulesName is sentence-transformers' list of an embedding model's modules. Each has a folder.
const ModulesName = "modules.json"

// defaultPooling is the folder of the pooling module without the list.
const defaultPooling = "1_Pooling"

// maxFolder bounds the name of a folder, which a system reports whole if it is too long.
const maxFolder = 255

// withPooling adds the configuration of the pooling module, which reduces many vectors to one, if the checkpoint has
// it, in a subfolder.
func withPooling(dir safetensors.Folder, files []File) ([]File, error) {
	folder := defaultPooling
	if i := slices.IndexFunc(files, func(f File) bool { return f.Name == ModulesName }); i >= 0 {
		var modules []struct{ Path, Type string }
		if err := pyjson.Unmarshal(files[i].Data, &modules); err != nil {
			return nil, fmt.Errorf("%s: %w: %w", files[i].Source, ErrSource, err)
		}
		folder = ""
		for _, m := range modules {
			if strings.HasSuffix(m.Type, ".Pooling") {
				folder = m.Path
			}
		}
		if folder == "" {
			return files, nil
		}
		if !fs.ValidPath(folder) || len(folder) > maxFolder || folder == "." ||
			path.Join(folder, ConfigName) == blob.DraftConfig || strings.ContainsAny(folder, `\:`) {
			return nil, fmt.Errorf("%s: %w: %q is not a folder in the checkpoint",
				files[i].Source, ErrSource, encode.Clip(folder))
		}
	}
	name := path.Join(folder, ConfigName)
	source := dir.Path(name)
	data, err := readBounded(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return files, nil // a model for text generation needs none
	}
	if err != nil {
		return nil, err
	}
	if err := pyjson.Check(data); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", source, ErrSource, err)
	}
	files = append(files, File{
		Kind: manifest.KindFile, Name: name, Source: source,
		Size: int64(len(data)), Data: data, origin: fingerprintOf(data),
	})
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	return files, nil
}
