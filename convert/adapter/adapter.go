// Package adapter reads LoRA adapters in the format of the Python package PEFT, and merges them into the weights of
// their base model while these are read.
//
// Contract: an adapter's configuration and tensor headers are the only parts in memory. The result, W + scale * (B *
// A), is computed in float32 and is the same on every machine. Anything that cannot be merged exactly as PEFT does it
// is an error that names it.
package adapter

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/ingotml/ingot/convert/packed"
	"github.com/ingotml/ingot/internal/limits/filekind"
	"github.com/ingotml/ingot/safetensors"
)

// Names of an adapter's files.
const (
	ConfigName  = "adapter_config.json"
	WeightsName = "adapter_model.safetensors"
)

const maxConfig = 4 << 20

// prefix is what PEFT puts before the names of all tensors. Other trainers leave it out.
const prefix = "base_model.model."

// Adapter is an open adapter. The caller must close it.
type Adapter struct {
	Folder safetensors.Folder
	Config []byte // of adapter_config.json
	Deltas []Delta
	// Whole lists the tensors that replace those of the base model: of modules_to_save, and trained biases. They have the
	// base model's names.
	Whole []Whole
	// Tied: the embedding and the output head of a model that ties them were trained as one (ensure_weight_tying).
	Tied bool

	file *safetensors.File
}

// Delta is a product that is added to a module's weight.
type Delta struct {
	Module string             // as in the base model
	A      safetensors.Source // [rank, in]
	B      safetensors.Source // [out, rank]
	Rank   int64
	Scale  float32
	Folder safetensors.Folder // of A and B
	// Begin and Rows are the rows of B that belong to the weight, if it is a part of the module's. Rows 0: all.
	Begin, Rows int64
}

// Out returns the number of rows of the weight that the delta is added to.
func (d Delta) Out() int64 {
	if d.Rows > 0 {
		return d.Rows
	}
	return d.B.Shape[0]
}

// Whole is a tensor that replaces one of the base model.
type Whole struct {
	Name   string
	Source safetensors.Source
	Folder safetensors.Folder
}

// Open reads an adapter's folder.
func Open(folder safetensors.Folder) (*Adapter, error) {
	a := &Adapter{Folder: folder}
	if err := a.open(); err != nil {
		_ = a.Close()
		return nil, err
	}
	return a, nil
}

// Close closes the file of the weights.
func (a *Adapter) Close() error {
	if a.file == nil {
		return nil
	}
	return a.file.Close()
}

// Path returns the path of the weights.
func (a *Adapter) Path() string { return a.file.Path() }

// Weights returns the file of the weights.
func (a *Adapter) Weights() *safetensors.File { return a.file }

func (a *Adapter) open() error {
	path := a.Folder.Path(ConfigName)
	f, err := a.Folder.Open(ConfigName)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w: no %s; an adapter is a folder written by save_pretrained of the Python package peft",
			a.Folder.Path("."), packed.ErrSource, ConfigName)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if a.Config, err = io.ReadAll(io.LimitReader(f, maxConfig+1)); err != nil {
		return err
	}
	if len(a.Config) > maxConfig {
		return fmt.Errorf("%s: %w: more than %d MiB", path, packed.ErrSource, maxConfig>>20)
	}
	if wrong := filekind.Of(a.Config, int64(len(a.Config))).Wrong(filekind.JSON); wrong != "" {
		return fmt.Errorf("%s: %w: %s", path, packed.ErrSource, wrong)
	}
	c, err := parse(a.Config)
	if err != nil {
		return fmt.Errorf("%s: %w: %w", path, packed.ErrSource, err)
	}
	a.Tied = c.Tying
	if a.file, err = safetensors.OpenIn(a.Folder, WeightsName); errors.Is(err, fs.ErrNotExist) {
		err = a.openOther(err)
	}
	if err != nil {
		return err
	}
	return a.classify(c)
}

// openOther opens the adapter's only safetensors file under another name, or says what is there instead.
func (a *Adapter) openOther(missing error) error {
	entries, err := a.Folder.ReadDir(".")
	if err != nil {
		return err
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() || !strings.HasPrefix(e.Name(), "adapter_model.") {
			continue
		}
		found, err := safetensors.KindOf(a.Folder, e.Name())
		switch {
		case err != nil:
			return err
		case found.Kind == filekind.Pickle:
			missing = fmt.Errorf("%s: %w: %s is a PyTorch pickle, which runs code when it is read; "+
				"save the adapter with safe_serialization=True", a.Folder.Path("."), packed.ErrSource, e.Name())
		case found.Kind == filekind.Safetensors:
			names = append(names, e.Name())
		default:
			if wrong := found.Wrong(filekind.Safetensors); wrong != "" {
				missing = fmt.Errorf("%s: %w: %s", a.Folder.Path(e.Name()), packed.ErrSource, wrong)
			}
		}
	}
	if len(names) != 1 {
		return missing
	}
	a.file, err = safetensors.OpenIn(a.Folder, names[0])
	return err
}

// classify assigns each tensor to a delta or to the whole tensors.
func (a *Adapter) classify(c config) error {
	deltas := map[string]*Delta{}
	var modules []string
	for _, t := range a.file.Header().Tensors {
		s := safetensors.Source{Tensor: t, File: a.file}
		name, ok := strings.CutPrefix(t.Name, prefix)
		if !ok && !strings.Contains(name, ".lora_") {
			return wrong(s, "its name does not begin with %s, as in PEFT's adapters", prefix)
		}
		if !slices.Contains([]safetensors.DType{safetensors.F32, safetensors.F16, safetensors.BF16}, t.DType) {
			return wrong(s, "it is %s: only F32, F16 and BF16 can be merged", t.DType)
		}
		module, which, lora := cutLoRA(name)
		switch {
		case strings.Contains(name, "lora_magnitude_vector"):
			return wrong(s, "DoRA cannot be merged; merge_and_unload of the Python package peft does it")
		case strings.Contains(name, "lora_embedding_"):
			return wrong(s, "the adapter of an embedding cannot be merged; merge_and_unload of the Python package peft does it")
		case lora:
			d := deltas[module]
			if d == nil {
				d = &Delta{Module: module, Folder: a.Folder}
				deltas[module] = d
				modules = append(modules, module)
			}
			if which == "A" {
				d.A = s
			} else {
				d.B = s
			}
		case strings.Contains(name, "lora_"):
			return wrong(s, "unknown kind of LoRA tensor")
		default:
			name = strings.Replace(strings.Replace(name, ".modules_to_save.default.", ".", 1), ".base_layer.", ".", 1)
			a.Whole = append(a.Whole, Whole{strings.Replace(name, ".modules_to_save.", ".", 1), s, a.Folder})
		}
	}
	slices.Sort(modules)
	slices.SortFunc(a.Whole, func(x, y Whole) int { return strings.Compare(x.Name, y.Name) })
	for _, m := range modules {
		if err := deltas[m].check(c); err != nil {
			return err
		}
		a.Deltas = append(a.Deltas, *deltas[m])
	}
	if len(a.Deltas)+len(a.Whole) == 0 {
		return fmt.Errorf("%s: %w: it holds no tensors", a.file.Path(), packed.ErrSource)
	}
	return nil
}

// cutLoRA splits a tensor's name: MODULE.lora_A.weight or, with the adapter's name, MODULE.lora_A.default.weight.
func cutLoRA(name string) (module, which string, ok bool) {
	for _, which := range []string{"A", "B"} {
		for _, end := range []string{".lora_" + which + ".weight", ".lora_" + which + ".default.weight"} {
			if module, ok := strings.CutSuffix(name, end); ok {
				return module, which, true
			}
		}
	}
	return "", "", false
}

// check verifies shapes, and sets rank and scale from the configuration.
func (d *Delta) check(c config) error {
	switch {
	case d.A.File == nil:
		return wrong(d.B, "there is no lora_A of %s", d.Module)
	case d.B.File == nil:
		return wrong(d.A, "there is no lora_B of %s", d.Module)
	case len(d.A.Shape) != 2:
		return wrong(d.A, "its shape is %v: only adapters of linear layers can be merged", d.A.Shape)
	case len(d.B.Shape) != 2:
		return wrong(d.B, "its shape is %v: only adapters of linear layers can be merged", d.B.Shape)
	}
	rank, scale, err := c.scale(d.Module)
	if err != nil {
		return wrong(d.A, "%w according to %s", err, ConfigName)
	}
	d.Rank, d.Scale = rank, float32(scale)
	if d.A.Shape[0] != d.Rank {
		return wrong(d.A, "its shape is %v, but its rank in %s (r, rank_pattern) is %d", d.A.Shape, ConfigName, d.Rank)
	}
	if d.B.Shape[1] != d.Rank {
		return wrong(d.B, "its shape is %v, but its rank in %s (r, rank_pattern) is %d", d.B.Shape, ConfigName, d.Rank)
	}
	return nil
}

// wrong returns an error about a tensor of the adapter.
func wrong(s safetensors.Source, format string, args ...any) error {
	return fmt.Errorf("%s: tensor %s: %w: %w", s.File.Path(), s.Name, packed.ErrSource, fmt.Errorf(format, args...))
}
