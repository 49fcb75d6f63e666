package layout

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// section is a part of a file.
type section struct {
	path     string
	at, size int64
}

// scan finds the files in an archive. It reads only headers.
func scan(ctx context.Context, file string) (map[string]section, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	members := map[string]section{}
	var refused error
	// A tar.Reader reads whole blocks of a seekable file, so the file's offset is where the member begins.
	for n, r := 0, tar.NewReader(f); ; n++ {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			if _, docker := members[dockerManifest]; docker && members[ocispec.ImageIndexFile] == (section{}) {
				refused = nil // notLayout explains it
			}
			return members, refused
		}
		if errors.Is(err, tar.ErrInsecurePath) {
			return nil, fmt.Errorf("its member %q leads out of it: %w", manifest.Clip(h.Name), ErrLayout)
		}
		if n == 0 && err != nil {
			return nil, fmt.Errorf("it is no tar archive: %w", ErrLayout)
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("it is truncated: %w", ErrLayout)
		}
		if err != nil {
			return nil, fmt.Errorf("%v: %w", err, ErrLayout)
		}
		if n >= limits.LayoutMembers {
			return nil, fmt.Errorf("it has more than %d members: %w", limits.LayoutMembers, manifest.ErrTooLarge)
		}
		name, err := checkMember(h)
		if err != nil {
			refused = cmp.Or(refused, err)
		}
		if name == "" {
			continue
		}
		at, err := f.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, err
		}
		if _, twice := members[name]; twice {
			return nil, fmt.Errorf("it has %s twice: %w", manifest.Clip(name), ErrLayout)
		}
		if h.Size > info.Size()-at {
			return nil, fmt.Errorf("it is truncated: %s ends beyond its end: %w", manifest.Clip(name), ErrLayout)
		}
		members[name] = section{file, at, h.Size}
	}
}

// checkMember returns the clean name of a regular file in an archive, or "" for a folder. Others are refused.
func checkMember(h *tar.Header) (string, error) {
	refuse := func(what string) (string, error) {
		return "", fmt.Errorf("its member %q %s: %w", manifest.Clip(h.Name), what, ErrLayout)
	}
	name := path.Clean(h.Name)
	for part := range strings.SplitSeq(h.Name, "/") {
		if part == ".." {
			return refuse("leads out of it")
		}
	}
	if path.IsAbs(name) || strings.ContainsAny(name, "\\\x00") {
		return refuse("leads out of it")
	}
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return refuse("is a sparse file")
		}
	}
	switch h.Typeflag {
	case tar.TypeReg:
		return name, nil
	case tar.TypeDir, tar.TypeXGlobalHeader:
		return "", nil
	case tar.TypeGNUSparse:
		return refuse("is a sparse file")
	case tar.TypeSymlink, tar.TypeLink:
		return refuse("is a link; an archive of a layout has only files and folders")
	}
	return refuse("is neither a file nor a folder")
}

// plain returns the path of an archive that is not compressed: the file itself, or a temporary file with its content,
// which the caller removes.
func plain(ctx context.Context, file string) (path string, temporary bool, err error) {
	f, err := os.Open(file)
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", false, err
	}
	b := bufio.NewReaderSize(f, 1<<20)
	magic, _ := b.Peek(6)
	switch {
	case len(magic) == 0:
		return "", false, fmt.Errorf("it is empty: %w", ErrLayout)
	case bytes.HasPrefix(magic, []byte("\x28\xb5\x2f\xfd")):
		return "", false, fmt.Errorf("it is compressed with zstd; unpack it with `zstd -d`: %w", ErrLayout)
	case bytes.HasPrefix(magic, []byte("\xfd7zXZ")):
		return "", false, fmt.Errorf("it is compressed with xz; unpack it with `xz -d`: %w", ErrLayout)
	case !bytes.HasPrefix(magic, []byte("\x1f\x8b")):
		return file, false, nil
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return "", false, fmt.Errorf("%v: %w", err, ErrLayout)
	}
	to, err := os.CreateTemp("", "ingot-*.tar")
	if err != nil {
		return "", false, err
	}
	defer to.Close()
	most := info.Size()*limits.LayoutRatio + 1<<20
	n, err := io.Copy(to, io.LimitReader(withContext{ctx, z}, most+1))
	switch {
	case err == nil && n > most:
		err = fmt.Errorf("it unpacks to more than %d times its size: %w", limits.LayoutRatio, manifest.ErrTooLarge)
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader), errors.Is(err, io.ErrUnexpectedEOF):
		err = fmt.Errorf("its compression is damaged: %v: %w", err, ErrLayout)
	}
	if err != nil {
		os.Remove(to.Name())
		return "", false, full(os.TempDir(), err)
	}
	return to.Name(), true, nil
}

// withContext is a reader that fails when its context ends.
type withContext struct {
	ctx context.Context
	r   io.Reader
}

func (w withContext) Read(p []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	return w.r.Read(p)
}

// dockerManifest is the index of docker's own archives.
const dockerManifest = "manifest.json"

// notLayout explains why an archive without index.json or oci-layout is none.
func notLayout(members map[string]section) error {
	if _, docker := members[dockerManifest]; docker {
		return fmt.Errorf("it is an archive in docker's own form; convert it with "+
			"`skopeo copy docker-archive:FILE oci-archive:FILE`: %w", ErrLayout)
	}
	return fmt.Errorf("it has no %s: %w", ocispec.ImageLayoutFile, ErrLayout)
}
