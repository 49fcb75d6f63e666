package layout

import (
	"context"
	"io"
	"io/fs"
	"os"

	"github.com/ingotml/ingot/internal/atomicfile"
	"github.com/ingotml/ingot/manifest/store/disk"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// publish makes the blob at path of the empty temporary file f, whose folder belongs to the owner of like: by a hard
// link if nothing writes to the source and the owner is the same, or else by a clone, or else by a copy. The caller
// removes f if it is still there.
func publish(
	ctx context.Context, f *os.File, path string, c *content, d ocispec.Descriptor, like fs.FileInfo, progress func(int64),
) (way, error) {
	verify := func(r io.Reader) error {
		if c.trusted {
			progress(d.Size)
			return nil
		}
		return pour(ctx, io.Discard, r, d, progress)
	}
	if c.file != nil && c.steady {
		info, err := c.file.Stat()
		if err == nil && disk.SameOwner(info, like) && disk.LinkOver(c.file.Name(), f.Name(), info) {
			if err := verify(c.Reader); err != nil {
				return linked, err
			}
			return linked, atomicfile.Rename(f.Name(), path)
		}
	}
	if c.file != nil && disk.Reflink(f, c.file) == nil {
		if err := verify(io.NewSectionReader(f, 0, d.Size+1)); err != nil {
			return cloned, err
		}
		return cloned, disk.Publish(f, 0o444, path)
	}
	if err := disk.Preallocate(f, d.Size); err != nil {
		return copied, err
	}
	if err := pour(ctx, f, c.Reader, d, progress); err != nil {
		return copied, err
	}
	return copied, disk.Publish(f, 0o444, path)
}
