package convert

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/convert/sources"
	"github.com/ingotml/ingot/safetensors"
	"github.com/opencontainers/go-digest"
)

// ErrSource says that what FROM names cannot be imported.
var ErrSource = sources.ErrSource

// Inventory is a model that an image can be made from, opened: a checkpoint folder, or an image of the store.
type Inventory struct {
	From  string // the folder or the image, as messages name it
	Model arch.Model
	Files []File     // that belong into the image, sorted by name; config.json among them
	Draft *Inventory // of an image that has one

	weights    []weight  // sorted by name
	unlisted   []weight  // in the files, but not in the index
	ignored    []Dropped // of a quantized checkpoint
	recognized []sources.Recognized
	checkpoint *safetensors.Checkpoint
	stored     bool
	image      digest.Digest // of the manifest of an image
	base       Record        // of an image
}

const configName = "config.json"

// Open reads a checkpoint folder: its configuration, the headers of its weights, and its other files. Close it.
func Open(dir string) (*Inventory, error) {
	inv := &Inventory{From: dir}
	if err := inv.openFolder(); err != nil {
		_ = inv.Close()
		return nil, err
	}
	return inv, nil
}

func (inv *Inventory) openFolder() error {
	entries, err := os.ReadDir(inv.From)
	if err != nil {
		return err
	}
	if inv.Files, err = readFiles(inv.From, entries); err != nil {
		return err
	}
	config, ok := inv.file(configName)
	if !ok {
		return fmt.Errorf("%s: %w: there is no %s%s", inv.From, ErrSource, configName, layoutHint(inv.From))
	}
	if inv.Model, err = arch.Detect(config.Data); err != nil {
		return inv.inFolder(err)
	}
	inv.checkpoint, err = safetensors.OpenCheckpoint(inv.From)
	if errors.Is(err, safetensors.ErrNoWeights) {
		return inv.explainNoWeights(err, entries)
	}
	if err != nil {
		return err
	}
	for _, s := range inv.checkpoint.Unindexed() {
		inv.unlisted = append(inv.unlisted, fileWeight(s))
	}
	return inv.readWeights(config.Data)
}

// readWeights lists the weights, those of a quantized checkpoint under the names that they have in a plain one. What its
// configuration says of the quantization is no part of the image, whose blobs say what they hold.
func (inv *Inventory) readWeights(config []byte) error {
	found, err := sources.Read(sources.NewCheckpoint(inv.From, config, inv.checkpoint.Tensors()))
	if err != nil {
		return err
	}
	for _, s := range found.Plain {
		inv.weights = append(inv.weights, fileWeight(s))
	}
	for _, w := range found.Weights {
		inv.weights = append(inv.weights, codedWeight(w))
	}
	slices.SortFunc(inv.weights, func(a, b weight) int { return cmp.Compare(a.Name, b.Name) })
	for _, i := range found.Ignored {
		inv.ignored = append(inv.ignored, Dropped{Source: fileWeight(i.Source).describe(), Reason: i.Reason})
	}
	inv.recognized = found.Recognized
	for i := range inv.Files {
		if f := &inv.Files[i]; f.Name == configName {
			f.Data = sources.Strip(f.Data)
			f.Size = int64(len(f.Data))
		}
	}
	return nil
}

// Close closes the files of the weights.
func (inv *Inventory) Close() error {
	var errs []error
	if inv.Draft != nil {
		errs = append(errs, inv.Draft.Close())
	}
	if inv.checkpoint != nil {
		errs = append(errs, inv.checkpoint.Close())
	}
	return errors.Join(errs...)
}

func (inv *Inventory) file(name string) (File, bool) {
	for _, f := range inv.Files {
		if f.Name == name {
			return f, true
		}
	}
	return File{}, false
}

// lookup finds a tensor by name.
func (inv *Inventory) lookup(name string) (weight, error) {
	if w, ok := findWeight(inv.weights, name); ok {
		return w, nil
	}
	return weight{}, fmt.Errorf("%s: tensor %q: %w: it is not there", inv.From, name, ErrSource)
}

// inFolder puts the folder in front of an error that starts with the name of a file in it.
func (inv *Inventory) inFolder(err error) error {
	if inv.stored {
		return fmt.Errorf("%s: %w", inv.From, err)
	}
	return fmt.Errorf("%s%c%w", inv.From, filepath.Separator, err)
}

// explainNoWeights says what a folder without safetensors has instead.
func (inv *Inventory) explainNoWeights(err error, entries []fs.DirEntry) error {
	for _, e := range entries {
		switch ext := strings.ToLower(filepath.Ext(e.Name())); {
		case ext == ".gguf":
			return fmt.Errorf("%s: %w: GGUF files are not imported; take the model's safetensors checkpoint: %w", filepath.Join(inv.From, e.Name()), ErrSource, err)
		case ext == ".pt" || ext == ".pth" || ext == ".ckpt" || ext == ".bin" && strings.Contains(e.Name(), "model"):
			return fmt.Errorf("%s: %w: it is a PyTorch pickle, and reading one runs code that it holds; take the model's safetensors checkpoint, "+
				"or convert it where you trust it, with save_pretrained(..., safe_serialization=True) of transformers: %w", filepath.Join(inv.From, e.Name()), ErrSource, err)
		}
	}
	return err
}

// layoutHint says what a folder without config.json seems to be.
func layoutHint(dir string) string {
	for _, hint := range []struct{ file, text string }{
		{"model_index.json", ": it is an image-generation model (model_index.json), which is not supported"},
		{"adapter_config.json", ": it is an adapter; name its base model in FROM of a Modelfile, and this folder in an ADAPTER line"},
		{"params.json", ": it is in its maker's own layout (params.json), import the Hugging Face one"},
	} {
		if _, err := os.Stat(filepath.Join(dir, hint.file)); !errors.Is(err, fs.ErrNotExist) {
			return hint.text
		}
	}
	return ": want a folder with config.json and *.safetensors"
}
