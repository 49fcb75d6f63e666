package convert

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/ingotml/ingot/safetensors"
	"golang.org/x/sync/errgroup"
)

// write writes all files into an existing folder.
func (x *export) write(ctx context.Context, dir string) error {
	p := exportProgress{report: x.opts.Progress}
	for e := x; e != nil; e = e.draft {
		p.event.TotalTensors += len(e.arrays)
		p.event.TotalBytes += e.bytes()
	}
	return x.writeAll(ctx, dir, &p)
}

func (x *export) writeAll(ctx context.Context, dir string, p *exportProgress) error {
	for _, f := range x.files {
		path := filepath.Join(dir, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := writeWhole(path, func(w io.Writer) error {
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
	if err := os.Mkdir(sub, 0o755); err != nil {
		return err
	}
	return x.draft.writeAll(ctx, sub, p)
}

func (x *export) writeShard(ctx context.Context, dir string, s shard, p *exportProgress) error {
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
	return writeWhole(filepath.Join(dir, s.name), func(w io.Writer) error {
		err := safetensors.Write(w, list, x.metadata(s), func(i int) (io.Reader, error) {
			err := closeLast()
			if i > 0 {
				p.tensor()
			}
			if err == nil {
				open, err = s.arrays[i].from.open(ctx)
			}
			return p.counting(open), err
		})
		if err == nil {
			p.tensor()
		}
		return err
	})
}

// writeWhole writes and syncs a file.
func writeWhole(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	b := bufio.NewWriterSize(f, 1<<20)
	if err := write(b); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	if err := b.Flush(); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}

// exportProgress accumulates and reports progress.
type exportProgress struct {
	mu     sync.Mutex
	event  Event
	report func(Event)
}

func (p *exportProgress) add(bytes int64, tensors int) {
	if p.report == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.event.Bytes += bytes
	p.event.Tensors += tensors
	p.report(p.event)
}

func (p *exportProgress) tensor() { p.add(0, 1) }

// counting returns a reader that reports the bytes read.
func (p *exportProgress) counting(r io.Reader) io.Reader { return countingReader{r, p} }

type countingReader struct {
	io.Reader
	p *exportProgress
}

func (c countingReader) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	if n > 0 {
		c.p.add(int64(n), 0)
	}
	return n, err
}
