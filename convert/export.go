package convert

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

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/quantize"
)

// ErrExport says that a model cannot be written as a checkpoint folder.
var ErrExport = errors.New("cannot export")

// ExportOptions says how a model becomes a folder.
type ExportOptions struct {
	// a cast: what quantized tensors become, for programs that do not know the formats; 0 keeps them
	Dequantize quantize.Type
	Parallel   int         // files written at once; 0 = as many as processors
	Progress   func(Event) // called after each piece, never by two goroutines at once

	shard int64 // most bytes of a file of weights; 0 = maxShard
}

// Exported is what Export wrote.
type Exported struct {
	Dir     string   `json:"dir"`
	Files   []string `json:"files"` // in the folder, sorted
	Tensors int      `json:"tensors"`
	Bytes   int64    `json:"bytes"` // of the tensors
	Notes   []string `json:"notes,omitempty"`
}

// maxShard is what mlx-lm and Hugging Face's tools split files at, in the smaller of the two meanings of a gigabyte. A tensor is
// never split.
const maxShard = 5_000_000_000

// Export writes a model of the store as a checkpoint folder: weights, configuration and the files that came with it. Quantized
// tensors are as mlx-lm reads them, with their formats in the configuration; a model without any is as transformers reads it.
// What no file of a checkpoint can say is in a Modelfile, and a draft in a folder of its own.
//
// The folder must not exist or be empty. It is whole, or what was there before: files are written in a hidden folder inside,
// and get their names when the last one is complete.
func Export(ctx context.Context, store *manifest.Store, entry *manifest.Entry, dir string,
	opts ExportOptions) (Exported, error) {
	if opts.Dequantize != 0 && !opts.Dequantize.IsCast() {
		return Exported{}, fmt.Errorf("%w: weights become bf16, f16 or f32, not %s", ErrExport, opts.Dequantize)
	}
	if opts.Parallel <= 0 {
		opts.Parallel = runtime.GOMAXPROCS(0)
	}
	opts.shard = cmp.Or(opts.shard, int64(maxShard))
	release, err := store.Lock(ctx) // a collection waits until the blobs are read
	if err != nil {
		return Exported{}, err
	}
	defer release()
	if err := store.CheckPresent(entry, true); err != nil {
		return Exported{}, err
	}
	inv, err := OpenImage(ctx, store, entry)
	if err != nil {
		return Exported{}, err
	}
	x, err := planExport(inv, opts)
	if err != nil {
		return Exported{}, err
	}
	if err := x.addModelfile(ctx, store, entry); err != nil {
		return Exported{}, err
	}
	target, err := openTarget(dir)
	if err != nil {
		return Exported{}, err
	}
	defer target.abandon()
	if err := x.write(ctx, target.staging); err != nil {
		return Exported{}, fmt.Errorf("export to %s: %w", dir, explain(err))
	}
	if err := target.complete(); err != nil {
		return Exported{}, fmt.Errorf("export to %s: %w", dir, explain(err))
	}
	out := Exported{Dir: dir, Tensors: len(x.arrays), Bytes: x.bytes(), Notes: x.notes}
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

// target is the folder that is being made.
type target struct {
	dir     string
	staging string // inside, hidden
	made    bool   // the folder was not there
	done    bool
}

const stagingPrefix = ".ingot-export-"

// openTarget makes the folder where it is absent. What a killed export left in it is removed.
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
			return nil, fmt.Errorf("%s: %w: the folder holds %s; name one that is empty or does not exist", dir, ErrExport,
				e.Name())
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

// complete gives all files their names, the configuration last: without it a folder is no model.
func (t *target) complete() error {
	entries, err := os.ReadDir(t.staging)
	if err != nil {
		return err
	}
	slices.SortStableFunc(entries, func(a, b fs.DirEntry) int {
		return cmp.Compare(last(a.Name() == configName), last(b.Name() == configName))
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

// abandon removes what was written, unless it is complete.
func (t *target) abandon() {
	if t.done {
		return
	}
	if t.staging != "" {
		_ = os.RemoveAll(t.staging)
	}
	if t.made {
		_ = os.Remove(t.dir) // stays when somebody put something there
	}
}
