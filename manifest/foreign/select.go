package foreign

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	modelspec "github.com/modelpack/model-spec/specs-go/v1"
)

// Matches reports whether a pattern selects a file: by its path, by its name, or by a folder that it is in. No pattern
// selects every file. Patterns are those of [path.Match].
func Matches(patterns []string, name string) bool {
	if len(patterns) == 0 {
		return true
	}
	for _, p := range patterns {
		p = strings.TrimSuffix(strings.TrimPrefix(p, "./"), "/")
		if ok, _ := path.Match(p, path.Base(name)); ok {
			return true
		}
		for at := name; at != "."; at = path.Dir(at) {
			if ok, _ := path.Match(p, at); ok {
				return true
			}
		}
	}
	return false
}

// MayHold reports whether a layer has a file that the patterns select, as far as its manifest tells.
func (l Layer) MayHold(patterns []string) bool {
	switch {
	case !l.Archive || l.isFile():
		return Matches(patterns, l.Path)
	case l.Path == "" || Matches(patterns, l.Path):
		return true
	}
	return slices.ContainsFunc(patterns, func(p string) bool { return !strings.Contains(p, "/") || under(p, l.Path) })
}

// under reports whether a pattern may select a path in a folder.
func under(pattern, folder string) bool {
	p, f := strings.Split(strings.TrimPrefix(pattern, "./"), "/"), strings.Split(folder, "/")
	for i := range min(len(p), len(f)) {
		if ok, _ := path.Match(p[i], f[i]); !ok {
			return false
		}
	}
	return true
}

// fileTypes are extensions that folders do not have.
var fileTypes = append([]string{".safetensors", ".gguf", ".bin", ".model", ".tiktoken"}, notWeights...)

// isFile reports whether an archive holds a single file, which its path names.
func (l Layer) isFile() bool {
	var meta modelspec.FileMetadata
	text := l.Annotations[modelspec.AnnotationFileMetadata]
	if text != "" && json.Unmarshal([]byte(text), &meta) == nil && l.Path != "" {
		return meta.Typeflag != '5' && meta.Name != "" // tar's type of folders
	}
	return slices.Contains(fileTypes, strings.ToLower(path.Ext(l.Path)))
}
