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

// ErrSource reports a source that cannot be imported.
var ErrSource = sources.ErrSource

// Inventory is an open source of an image: a checkpoint folder, or an image in the store.
type Inventory struct {
	From  string // the folder or the image, for messages
	Model arch.Model
	Files []File     // to include in the image, sorted by name; config.json is one of them
	Draft *Inventory // the draft of an image that has one

	weights    []weight  // sorted by name
	unlisted   []weight  // in the shards, but not in the index
	ignored    []Dropped // tensors of a quantized checkpoint that are not needed
	recognized []sources.Recognized
	checkpoint *safetensors.Checkpoint
	stored     bool
	image      digest.Digest // manifest digest, if the source is an image
	base       Record        // its creator's choices, if the source is an image
}

const configName = "config.json"

// Open reads a checkpoint folder: its configuration, the headers of its weights, and its other files. The caller must
// close the result.
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
		return fmt.Errorf("%s: %w: no %s%s", inv.From, ErrSource, configName, layoutHint(inv.From))
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

// readWeights lists the weights, those of a quantized checkpoint under the names that they have in a plain one. It
// removes the quantization settings from config.json, because in an image each blob describes its own type.
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

// Close closes the weights' files.
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
	return weight{}, fmt.Errorf("%s: tensor %q: %w: not found", inv.From, name, ErrSource)
}

// inFolder prefixes an error that starts with a file name with the folder.
func (inv *Inventory) inFolder(err error) error {
	if inv.stored {
		return fmt.Errorf("%s: %w", inv.From, err)
	}
	return fmt.Errorf("%s%c%w", inv.From, filepath.Separator, err)
}

// explainNoWeights improves the error for a folder without safetensors, depending on what it has instead.
func (inv *Inventory) explainNoWeights(err error, entries []fs.DirEntry) error {
	for _, e := range entries {
		switch ext := strings.ToLower(filepath.Ext(e.Name())); {
		case ext == ".gguf":
			return fmt.Errorf("%s: %w: GGUF files are not supported; use the model's safetensors checkpoint: %w",
				filepath.Join(inv.From, e.Name()), ErrSource, err)
		case ext == ".pt" || ext == ".pth" || ext == ".ckpt" || ext == ".bin" && strings.Contains(e.Name(), "model"):
			return fmt.Errorf("%s: %w: a PyTorch pickle runs code when it is read; use the model's safetensors checkpoint, "+
				"or convert it on a machine where you trust it, with save_pretrained(..., safe_serialization=True) "+
				"of transformers: %w", filepath.Join(inv.From, e.Name()), ErrSource, err)
		}
	}
	return err
}

// layoutHint guesses what a folder without config.json is.
func layoutHint(dir string) string {
	for _, hint := range []struct{ file, text string }{
		{"model_index.json", ": it is an image-generation model (model_index.json), which is not supported"},
		{"adapter_config.json", ": it is an adapter; name its base model in the FROM line of a Modelfile, " +
			"and this folder in an ADAPTER line"},
		{"params.json", ": it has its publisher's own layout (params.json); use the Hugging Face checkpoint"},
	} {
		if _, err := os.Stat(filepath.Join(dir, hint.file)); !errors.Is(err, fs.ErrNotExist) {
			return hint.text
		}
	}
	return ": want a folder with config.json and *.safetensors"
}
