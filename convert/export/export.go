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
	"runtime"
	"slices"

	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/convert/write"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/disk"
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

	// Replaced by tests.
	open  func(path string) (outFile, error)
	space *disk.Space // of the folder's disk
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
// when the last one is complete. If the disk is full, or the program is killed, the subfolder stays, and the
// next export into the folder resumes from it. After other errors nothing stays.
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
	if opts.open == nil {
		opts.open = openFile
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
	src, err := source.OpenImage(ctx, store, entry, source.Options{})
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
	out := x.result(dir)
	target, err := openTarget(ctx, dir)
	if err != nil {
		return Result{}, err
	}
	defer target.abandon()
	if err := target.prepare(out.Files, out.Bytes, opts.space); err != nil {
		return Result{}, fmt.Errorf("export to %s: %w", dir, err)
	}
	err = x.write(ctx, target.staging)
	target.keep = errors.Is(disk.NoSpace(err), manifest.ErrNoSpace)
	if err == nil {
		err = target.complete()
	}
	if err != nil {
		return Result{}, fmt.Errorf("export to %s: %w", dir, write.Explain(err))
	}
	return out, nil
}

// result describes the folder.
func (x *folder) result(dir string) Result {
	out := Result{Dir: dir, Tensors: len(x.arrays), Bytes: x.bytes(), Notes: x.notes}
	for _, f := range x.files {
		out.Files = append(out.Files, f.name)
	}
	for _, s := range x.shards {
		out.Files = append(out.Files, s.name)
	}
	if x.draft != nil {
		draft := x.draft.result(dir)
		out.Tensors += draft.Tensors
		out.Bytes += draft.Bytes
		for _, name := range draft.Files {
			out.Files = append(out.Files, draftFolder+"/"+name)
		}
	}
	slices.Sort(out.Files)
	return out
}
