// Package export writes a model in the store as a checkpoint folder: the inverse of an import.
//
// Quantized tensors have mlx-lm's layout, and their types are in config.json. A model without quantized tensors has
// transformers' layout. What no file of a checkpoint can express is in a Modelfile; a draft is in a subfolder.
package export

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/convert/write"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/quantize"
)

// ErrExport reports a model that cannot be written as a checkpoint folder.
var ErrExport = errors.New("cannot export")

// Options control how a model is written as a folder.
type Options struct {
	// Dequantize is a cast that replaces quantized types, for programs that do not support them; 0 keeps them.
	Dequantize quantize.Type
	Parallel   int               // files written concurrently; 0 = the number of processors
	Progress   func(write.Event) // called after each batch, never concurrently

	MaxShard int64 // bytes per shard, unless one tensor is larger; 0 = 5 GB
}

// Result describes the folder that was written.
type Result struct {
	Dir     string   `json:"dir"`
	Files   []string `json:"files"` // in the folder, sorted
	Tensors int      `json:"tensors"`
	Bytes   int64    `json:"bytes"` // of the tensors
	Notes   []string `json:"notes,omitempty"`
}

// maxShard is the shard size of mlx-lm and of Hugging Face's tools, with a decimal gigabyte. Tensors are never split.
const maxShard = 5_000_000_000

// Folder writes a model in the store as a checkpoint folder: weights, configuration and the other files of its source.
//
// The folder must be absent or empty. The export is atomic: files are written to a hidden subfolder, and are renamed
// when the last one is complete.
func Folder(
	ctx context.Context, store *store.Store, entry *store.Entry, dir string, opts Options,
) (Result, error) {
	if opts.Dequantize != 0 && !opts.Dequantize.IsCast() {
		return Result{}, fmt.Errorf("%w: weights can be dequantized to bf16, f16 or f32, not to %s",
			ErrExport, opts.Dequantize)
	}
	if opts.Parallel <= 0 {
		opts.Parallel = runtime.GOMAXPROCS(0)
	}
	opts.MaxShard = cmp.Or(opts.MaxShard, int64(maxShard))
	release, err := store.Lock(ctx) // keeps a collection from removing the blobs
	if err != nil {
		return Result{}, err
	}
	defer release()
	if err := store.CheckPresent(entry, true); err != nil {
		return Result{}, err
	}
	src, err := source.OpenImage(ctx, store, entry)
	if err != nil {
		return Result{}, err
	}
	x, err := planFolder(src, opts)
	if err != nil {
		return Result{}, err
	}
	if err := x.addModelfile(ctx, store, entry); err != nil {
		return Result{}, err
	}
	target, err := openTarget(dir)
	if err != nil {
		return Result{}, err
	}
	defer target.abandon()
	if err := x.write(ctx, target.staging); err != nil {
		return Result{}, fmt.Errorf("export to %s: %w", dir, write.Explain(err))
	}
	if err := target.complete(); err != nil {
		return Result{}, fmt.Errorf("export to %s: %w", dir, write.Explain(err))
	}
	out := Result{Dir: dir, Tensors: len(x.arrays), Bytes: x.bytes(), Notes: x.notes}
	for _, f := range x.files {
		out.Files = append(out.Files, f.name)
	}
	for _, s := range x.shards {
		out.Files = append(out.Files, s.name)
	}
	if d := x.draft; d != nil {
		out.Tensors += len(d.arrays)
		out.Bytes += d.bytes()
		for _, f := range d.files {
			out.Files = append(out.Files, draftFolder+"/"+f.name)
		}
		for _, s := range d.shards {
			out.Files = append(out.Files, draftFolder+"/"+s.name)
		}
	}
	slices.Sort(out.Files)
	return out, nil
}

// target is the folder being written.
type target struct {
	dir     string
	staging string // the hidden subfolder
	made    bool   // the folder was absent
	done    bool
}

const stagingPrefix = ".ingot-export-"

// openTarget creates the folder if it is absent, and removes what a killed export left in it.
func openTarget(dir string) (*target, error) {
	t := &target{dir: dir}
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		t.made = true
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), stagingPrefix) {
			return nil, fmt.Errorf("%s: %w: the folder holds %s; name one that is empty or does not exist",
				dir, ErrExport, e.Name())
		}
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return nil, err
		}
	}
	if t.staging, err = os.MkdirTemp(dir, stagingPrefix); err != nil {
		t.abandon()
		return nil, err
	}
	return t, nil
}

// complete renames all files to their final names. The configuration is last: without it, the folder is not a model.
func (t *target) complete() error {
	entries, err := os.ReadDir(t.staging)
	if err != nil {
		return err
	}
	slices.SortStableFunc(entries, func(a, b fs.DirEntry) int {
		return cmp.Compare(last(a.Name() == source.ConfigName), last(b.Name() == source.ConfigName))
	})
	for i, e := range entries {
		if err := os.Rename(filepath.Join(t.staging, e.Name()), filepath.Join(t.dir, e.Name())); err != nil {
			for _, e := range entries[:i] {
				_ = os.RemoveAll(filepath.Join(t.dir, e.Name()))
			}
			return err
		}
	}
	t.done = true
	return os.Remove(t.staging)
}

func last(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// abandon removes an incomplete export.
func (t *target) abandon() {
	if t.done {
		return
	}
	if t.staging != "" {
		_ = os.RemoveAll(t.staging)
	}
	if t.made {
		_ = os.Remove(t.dir) // fails if others have put files there
	}
}
