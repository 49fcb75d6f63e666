package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/safetensors"
)

// ErrSource says that what FROM names cannot be imported.
var ErrSource = errors.New("cannot import")

// Inventory is an opened checkpoint folder.
type Inventory struct {
	Dir     string
	Model   arch.Model
	Weights *safetensors.Checkpoint
	Files   []File // that belong into the image, sorted by name; config.json among them
}

const configName = "config.json"

// Open reads a checkpoint folder: its configuration, the headers of its weights, and its other files. Close it.
func Open(dir string) (*Inventory, error) {
	inv := &Inventory{Dir: dir}
	if err := inv.open(); err != nil {
		_ = inv.Close()
		return nil, err
	}
	return inv, nil
}

func (inv *Inventory) open() error {
	entries, err := os.ReadDir(inv.Dir)
	if err != nil {
		return err
	}
	if inv.Files, err = readFiles(inv.Dir, entries); err != nil {
		return err
	}
	config, ok := inv.file(configName)
	if !ok {
		return fmt.Errorf("%s: %w: there is no %s%s", inv.Dir, ErrSource, configName, layoutHint(inv.Dir))
	}
	if inv.Model, err = arch.Detect(config.Data); err != nil {
		return inv.inFolder(err)
	}
	if method, ok := quantized(config.Data); ok {
		return fmt.Errorf("%s: %w: the checkpoint is quantized (%s); import the one in bf16, f16 or f32", filepath.Join(inv.Dir, configName), ErrSource, method)
	}
	inv.Weights, err = safetensors.OpenCheckpoint(inv.Dir)
	return err
}

// Close closes the files of the weights.
func (inv *Inventory) Close() error {
	if inv.Weights == nil {
		return nil
	}
	return inv.Weights.Close()
}

func (inv *Inventory) file(name string) (File, bool) {
	for _, f := range inv.Files {
		if f.Name == name {
			return f, true
		}
	}
	return File{}, false
}

// inFolder puts the folder in front of an error that starts with the name of a file in it.
func (inv *Inventory) inFolder(err error) error {
	return fmt.Errorf("%s%c%w", inv.Dir, filepath.Separator, err)
}

// quantized tells whether a configuration says that its weights are quantized, and by what.
func quantized(config []byte) (method string, ok bool) {
	var c struct {
		HF *struct {
			Method string `json:"quant_method"`
		} `json:"quantization_config"`
		MLX *struct {
			Mode string `json:"mode"`
		} `json:"quantization"`
	}
	if json.Unmarshal(config, &c) != nil {
		return "of an unknown kind", true
	}
	switch {
	case c.MLX != nil: // such checkpoints repeat it under the other key
		return "by MLX", true
	case c.HF != nil && c.HF.Method != "":
		return "quant_method " + fmt.Sprintf("%q", c.HF.Method), true
	case c.HF != nil:
		return "quantization_config", true
	}
	return "", false
}

// layoutHint says what a folder without config.json seems to be.
func layoutHint(dir string) string {
	for _, hint := range []struct{ file, text string }{
		{"model_index.json", ": it is an image-generation model (model_index.json), which is not supported"},
		{"adapter_config.json", ": it is an adapter, merge it into its base model first"},
		{"params.json", ": it is in its maker's own layout (params.json), import the Hugging Face one"},
	} {
		if _, err := os.Stat(filepath.Join(dir, hint.file)); !errors.Is(err, fs.ErrNotExist) {
			return hint.text
		}
	}
	return ": want a folder with config.json and *.safetensors"
}
