package export

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/ingotml/ingot/convert/write"
	"github.com/ingotml/ingot/manifest/store/disk"
	"github.com/ingotml/ingot/safetensors"
	"golang.org/x/sync/errgroup"
)

// write writes all files into an existing folder.
func (x *folder) write(ctx context.Context, dir string) error {
	var total write.Event
	for e := x; e != nil; e = e.draft {
		total.TotalTensors += len(e.arrays)
		total.TotalBytes += e.bytes()
	}
	return x.writeAll(ctx, dir, write.NewProgress(total, x.opts.Progress))
}

func (x *folder) writeAll(ctx context.Context, dir string, p *write.Progress) error {
	for _, f := range x.files {
		path := filepath.Join(dir, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := x.writeWhole(path, func(w io.Writer) error {
			_, err := w.Write(f.data)
			return err
		}); err != nil {
			return err
		}
	}
	group, running := errgroup.WithContext(ctx)
	group.SetLimit(x.opts.Parallel)
	for _, s := range x.shards {
		group.Go(func() error { return x.writeShard(running, dir, s, p) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if x.draft == nil {
		return nil
	}
	sub := filepath.Join(dir, draftFolder)
	if err := os.MkdirAll(sub, 0o755); err != nil {
		return err
	}
	return x.draft.writeAll(ctx, sub, p)
}

func (x *folder) writeShard(ctx context.Context, dir string, s shard, p *write.Progress) error {
	var list []safetensors.Tensor
	for _, a := range s.arrays {
		list = append(list, a.Tensor)
	}
	var open io.ReadCloser
	closeLast := func() error {
		if open == nil {
			return nil
		}
		err := open.Close()
		open = nil
		return err
	}
	defer func() { _ = closeLast() }()
	return x.writeWhole(filepath.Join(dir, s.name), func(w io.Writer) error {
		err := safetensors.Write(w, list, x.metadata(s), func(i int) (io.Reader, error) {
			err := closeLast()
			if i > 0 {
				p.Add(0, 1)
			}
			if err == nil {
				open, err = s.arrays[i].from.open(ctx)
			}
			return countingReader{open, p}, err
		})
		if err == nil {
			p.Add(0, 1)
		}
		return err
	})
}

// writeWhole writes and syncs a file. It keeps what an earlier export has written of it.
func (x *folder) writeWhole(path string, write func(io.Writer) error) error {
	f, err := x.opts.open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := &resumed{to: f}
	b := bufio.NewWriterSize(r, 1<<20)
	if err := write(b); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	if err := b.Flush(); err != nil {
		return err
	}
	if err := r.end(); err != nil {
		return err
	}
	if err := disk.Sync(f); err != nil {
		return err
	}
	return f.Close()
}

// countingReader reports the bytes read.
type countingReader struct {
	io.Reader
	progress *write.Progress
}

func (c countingReader) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	if n > 0 {
		c.progress.Add(int64(n), 0)
	}
	return n, err
}
