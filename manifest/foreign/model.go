package foreign

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/ingotml/ingot/manifest"
)

// has reports whether a layer has a role.
func (i *Image) has(role Role) bool {
	return slices.ContainsFunc(i.Layers, func(l Layer) bool { return l.Role == role })
}

// Model returns nil if the image seems to hold a model that can be imported. Otherwise it returns an
// [*manifest.UnknownManifestError] that says what the image is, and what to do with it. What is in archives, and in
// files without a telling name, only their content tells.
func (i *Image) Model() error {
	what, remedy := i.isNot()
	if what == "" {
		return nil
	}
	return &manifest.UnknownManifestError{What: what, Remedy: remedy}
}

// takeOut is the remedy for an image whose files are wanted.
const takeOut = "`ingot extract` takes its files out, and `ingot create` makes a model of a folder"

// CheckTensors returns an error if a decoded image has no tensors: it was stored as another program packed it.
func CheckTensors(img manifest.Image) error {
	if slices.ContainsFunc(img.Layers, func(l manifest.Layer) bool { return l.Kind == manifest.KindTensor }) {
		return nil
	}
	return &manifest.UnknownManifestError{What: "an image of whole files", Remedy: convertIt}
}

// convertIt is the remedy for an image that was stored as it is.
const convertIt = "`ingot pull` converts it; pull it again"

// isNot says what an image is that holds no model.
func (i *Image) isNot() (what, remedy string) {
	switch {
	case i.Tensors():
		return "", ""
	case i.note != "" && !i.data:
		return i.note, takeOut
	case i.has(Diffusion):
		return "an image generation model" + i.of(), takeOut
	case i.has(Adapter):
		return fmt.Sprintf("a model%s with an adapter in a GGUF file", i.of()), takeOut
	case len(i.Layers) == 0:
		return "an image without layers", "name another tag; the tool that made it shows its tags"
	case i.base != "":
		return "a ModelKit whose model is in another ModelKit, " + manifest.Clip(i.base), "name that one"
	case i.Format != Files && i.has(Weights):
		return "", ""
	case i.has(Dataset) && !slices.ContainsFunc(i.Layers, mayBeWeights):
		return "a dataset" + i.of(), takeOut
	case i.Format != Files:
		return "an image of " + string(i.Format) + " without weights", takeOut
	case !slices.ContainsFunc(i.Layers, mayBeWeights):
		return "an artifact of " + i.files(), takeOut
	}
	return "", ""
}

// Describe says what the image is: "an image of KitOps".
func (i *Image) Describe() string {
	switch {
	case i.note != "":
		return i.note
	case i.Tensors():
		return "a model with a layer per tensor"
	case i.Format == Files:
		return "an artifact of files"
	}
	return "an image" + i.of()
}

func (i *Image) of() string {
	if i.Format == Files {
		return ""
	}
	return " of " + string(i.Format)
}

// notWeights are extensions of files that hold no weights, whatever they are.
var notWeights = []string{
	".json", ".jsonl", ".txt", ".md", ".csv", ".tsv", ".parquet", ".arrow", ".yaml", ".yml", ".toml", ".xml", ".html",
	".py", ".sh", ".go", ".js", ".ipynb", ".pdf", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".mp3", ".mp4", ".wav",
	".sig", ".pem", ".crt", ".asc", ".jinja", ".log", ".tgz", ".gz", ".zip", ".zst", ".xz", ".bz2", ".tar",
	".onnx", ".pt", ".pth", ".ckpt", ".h5", ".tflite", ".pkl", ".npz", ".npy", ".exe", ".so", ".deb", ".rpm", ".wasm",
}

// minUnnamed is the size of a file without an extension that may be a model's weights. LICENSE and Makefile are
// smaller.
const minUnnamed = 1 << 20

// mayBeWeights reports whether a layer may be a model's weights. An archive may hold them, and a file of any name may
// be one, as long as its name says nothing else.
func mayBeWeights(l Layer) bool {
	if l.Role == Dataset || l.Archive || l.Role == Weights {
		return l.Role != Dataset
	}
	ext := strings.ToLower(path.Ext(l.Path))
	return ext != "" && !slices.Contains(notWeights, ext) || ext == "" && l.Size >= minUnnamed
}

// files lists the first files, for a message.
func (i *Image) files() string {
	const most = 3
	var names []string
	for _, l := range i.Layers {
		if len(names) == most {
			return fmt.Sprintf("%s and %d more files", strings.Join(names, ", "), len(i.Layers)-most)
		}
		names = append(names, manifest.Clip(l.Path))
	}
	return strings.Join(names, ", ")
}
