package unpack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/fault"
	"github.com/ingotml/ingot/manifest"
	"github.com/klauspost/compress/zstd"
)

// ErrArchive reports an archive that is damaged, or that no folder can hold.
var ErrArchive = fault.Register(errors.New("invalid archive"), fault.Kind{
	Name: "manifest/unpack.ErrArchive", Means: "an archive of an image is damaged or hostile",
	Rank: fault.Content + 5, Transfer: fault.Gateway,
})

// Member is one file of an archive.
type Member struct {
	Path   string
	Size   int64
	Offset int64  // of its bytes in the blob; -1 if the archive is compressed
	Is     string // what it is, if it is no regular file: "a symbolic link"; "" for a file

	io.Reader // its bytes, until the next member is visited
}

// Wrapping is how the bytes of a blob are to be read.
type Wrapping string

// Wrappings of files.
const (
	Plain Wrapping = "" // no archive
	Tar   Wrapping = "tar"
	Gzip  Wrapping = "tar+gzip"
	Zstd  Wrapping = "tar+zstd"
)

// headSize is the number of bytes that tell an archive: those of tar's first header.
const headSize = 512

// WrappingOf returns what a blob is by its first bytes. A media type may say something else.
func WrappingOf(blob io.ReaderAt) (Wrapping, error) {
	head := make([]byte, headSize)
	n, err := blob.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return Plain, err
	}
	head = head[:n]
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return Gzip, nil
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return Zstd, nil
	case n == headSize && (bytes.HasPrefix(head[257:], []byte("ustar")) || len(bytes.Trim(head, "\x00")) == 0):
		return Tar, nil
	case n == headSize:
		if _, err := tar.NewReader(bytes.NewReader(head)).Next(); err == nil { // the format before ustar has no magic
			return Tar, nil
		}
	}
	return Plain, nil
}

// Walk visits the members of an archive in their order, folders excepted. Their paths stay in the folder, but two may
// be the same: [Names] tells. An error of visit ends it, and is returned as it is.
func Walk(ctx context.Context, blob io.ReaderAt, size int64, visit func(Member) error) error {
	wrapping, err := WrappingOf(blob)
	if err != nil {
		return err
	}
	plain := io.NewSectionReader(blob, 0, size)
	var in io.Reader = plain
	switch wrapping {
	case Plain:
		return fmt.Errorf("it is not a tar archive: %w", ErrArchive)
	case Gzip:
		z, err := gzip.NewReader(plain)
		if err != nil {
			return damaged(err)
		}
		in = &bounded{ctx, z, unpackedLimit(size)}
	case Zstd:
		z, err := zstd.NewReader(plain, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(limits.ArchiveWindow))
		if err != nil {
			return damaged(err)
		}
		defer z.Close()
		in = &bounded{ctx, z, unpackedLimit(size)}
	}
	w := walker{archive: tar.NewReader(in)}
	if wrapping == Tar {
		w.plain = plain
	}
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		m, err := w.next()
		if errors.Is(err, io.EOF) {
			return drain(in, wrapping)
		}
		if err != nil {
			return err
		}
		if err := visit(m); err != nil {
			return err
		}
	}
}

// drain reads the rest of a compressed archive, because its checksum is at the end.
func drain(in io.Reader, wrapping Wrapping) error {
	if wrapping == Tar {
		return nil
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return damaged(err)
	}
	return nil
}

// unpackedLimit is the number of bytes that a compressed archive may have.
func unpackedLimit(size int64) int64 { return max(limits.ArchiveUnpacked, size*limits.ArchiveRatio) }

// bounded fails at a limit, which a small archive reaches only if it is made to fill a disk, and when its context ends:
// members that nobody wants are unpacked too.
type bounded struct {
	ctx context.Context
	io.Reader

	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.ctx.Err() != nil {
		return 0, ended{context.Cause(b.ctx)}
	}
	n, err := b.Reader.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("it unpacks to more than %d times its size: %w", limits.ArchiveRatio, ErrArchive)
	}
	return n, err
}

// ended is the end of a context as an error of a reader. It says nothing about the archive.
type ended struct{ error }

// walker reads an archive.
type walker struct {
	archive *tar.Reader
	plain   io.Seeker // where the archive is read, unless it is compressed
	count   int
}

// next returns the next member that is no folder.
func (w *walker) next() (Member, error) {
	for {
		h, err := w.archive.Next()
		if errors.Is(err, io.EOF) {
			return Member{}, io.EOF
		}
		if err != nil {
			return Member{}, damaged(err)
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		if w.count++; w.count > limits.ArchiveMembers {
			return Member{}, fmt.Errorf("it has more than %d members: %w", limits.ArchiveMembers, ErrArchive)
		}
		name, err := memberPath(h)
		if err != nil {
			return Member{}, err
		}
		if h.Typeflag == tar.TypeDir || name == "" { // the folder itself
			continue
		}
		m := Member{Path: name, Size: h.Size, Offset: -1, Is: irregular(h), Reader: memberReader{w.archive}}
		if w.plain != nil && m.Is == "" {
			if m.Offset, err = w.plain.Seek(0, io.SeekCurrent); err != nil {
				return Member{}, err
			}
		}
		return m, nil
	}
}

// memberReader marks the errors of a member's bytes as those of the archive.
type memberReader struct{ *tar.Reader }

func (r memberReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = damaged(err)
	}
	return n, err
}

// damaged marks an error of a reader of archives.
func damaged(err error) error {
	var end ended
	switch {
	case errors.As(err, &end):
		return end.error
	case errors.Is(err, ErrArchive):
		return err
	}
	if errors.Is(err, zstd.ErrWindowSizeExceeded) || errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		return fmt.Errorf("it needs more than %d MiB of memory to unpack: %w", limits.ArchiveWindow>>20, ErrArchive)
	}
	return fmt.Errorf("%w: %w", ErrArchive, err)
}

// memberPath returns the path of a member; "" for that of the folder itself.
func memberPath(h *tar.Header) (string, error) {
	name := strings.TrimSuffix(h.Name, "/")
	for _, part := range strings.Split(name, "/") {
		if part == ".." {
			return "", fmt.Errorf("member %q leaves the folder: %w", manifest.Clip(h.Name), ErrArchive)
		}
	}
	if path.IsAbs(h.Name) {
		return "", fmt.Errorf("member %q has an absolute path: %w", manifest.Clip(h.Name), ErrArchive)
	}
	if name = path.Clean(name); name == "." {
		return "", nil
	}
	return name, CheckPath(name)
}

// irregular says what a member is that is no regular file.
func irregular(h *tar.Header) string {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return "a sparse file"
		}
	}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeCont:
		return ""
	case tar.TypeSymlink:
		return "a symbolic link"
	case tar.TypeLink:
		return "a hard link"
	case tar.TypeChar, tar.TypeBlock:
		return "a device"
	case tar.TypeFifo:
		return "a named pipe"
	case tar.TypeGNUSparse:
		return "a sparse file"
	}
	return "of an unknown type"
}
