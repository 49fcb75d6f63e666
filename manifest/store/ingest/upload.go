package ingest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/opencontainers/go-digest"
)

// An upload is a file that a client sends to a server before the create that reads it. It is stored as
// ingest/upload-HEX, where HEX is its SHA-256; the file is complete, synced and read-only.

const (
	uploadPrefix = "upload-" // followed by the hex digits of the digest
	folderPrefix = "files-"  // of the folders made by Folder
)

// usedAge is how long an upload is kept after a create has read it, so that other creates can use the same files.
const usedAge = time.Hour

// UploadOptions are options of [PutUpload].
type UploadOptions struct {
	Size     int64 // expected size in bytes; 0: unknown
	KeepFree int64 // bytes to keep free on the disk
}

// PutUpload stores the content of r, whose digest must be d, for a later [Folder]. Other content is a
// [*MismatchError]; too little disk space is a [manifest.ErrNoSpace]. After an error nothing is kept. Collections keep
// an upload for [Age], or for an hour once it was used. PutUpload does not hold [store.Store.Lock] while it reads, so r
// may be slow.
func PutUpload(ctx context.Context, s *store.Store, d digest.Digest, r io.Reader, o UploadOptions) error {
	if err := putUpload(ctx, s, d, r, o); err != nil {
		return fmt.Errorf("upload %s: %w", manifest.Clip(string(d)), s.Space().FullDisk(err))
	}
	return nil
}

func putUpload(ctx context.Context, s *store.Store, d digest.Digest, r io.Reader, o UploadOptions) error {
	if !manifest.ValidDigest(d) {
		return errors.New("not a sha256 digest")
	}
	release, err := s.Lock(ctx)
	if err != nil {
		return err
	}
	dropUploads(s) // frees space
	release()
	f, err := newPendingUpload(ctx, s, o)
	if err != nil {
		return err
	}
	defer f.end()
	hash := sha256.New()
	size, err := io.Copy(io.MultiWriter(f, hash), r)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if got := digest.NewDigest(digest.SHA256, hash); got != d {
		return &MismatchError{Want: d, Got: got, Size: size}
	}
	return f.publish(ctx, uploadPath(s, d))
}

func uploadPath(s *store.Store, d digest.Digest) string {
	return s.Path(store.IngestDir, uploadPrefix+d.Encoded())
}

// HasUpload reports whether [Folder] can find a file with this digest, as an upload or a blob. It extends the
// life of an upload that is about to expire.
func HasUpload(s *store.Store, d digest.Digest) bool {
	if !manifest.ValidDigest(d) {
		return false
	}
	info, err := os.Lstat(uploadPath(s, d))
	if err != nil {
		_, err = filePath(s, d)
		return err == nil
	}
	// A resumed create compares modification times, so the file's is changed only shortly before it expires.
	if now := s.Now(); now.Sub(info.ModTime()) > Age-2*usedAge {
		_ = os.Chtimes(uploadPath(s, d), now, now)
	}
	return true
}

// filePath returns the path of the upload or blob with this digest.
func filePath(s *store.Store, d digest.Digest) (string, error) {
	if !manifest.ValidDigest(d) {
		return "", fmt.Errorf("%q is not a sha256 digest: %w", manifest.Clip(string(d)), manifest.ErrBlobMissing)
	}
	for _, path := range []string{uploadPath(s, d), s.BlobPath(d)} {
		info, err := os.Lstat(path)
		if err == nil && info.Mode().IsRegular() {
			return path, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "", fmt.Errorf("%s: %w", d, manifest.ErrBlobMissing)
}

// Folder creates a folder with links to uploads or blobs, under names chosen by the caller, which create can read as a
// checkpoint. A digest that the store does not have is a [manifest.ErrBlobMissing]. Names must not contain separators.
// The caller holds [store.Store.Lock] until it calls remove, which removes the folder but not the files.
func Folder(s *store.Store, files map[string]digest.Digest) (dir string, remove func(), err error) {
	if err := os.MkdirAll(s.Path(store.IngestDir), 0o755); err != nil {
		return "", nil, err
	}
	dir, err = os.MkdirTemp(s.Path(store.IngestDir), folderPrefix+"*")
	if err != nil {
		return "", nil, fmt.Errorf("create folder of uploads: %w", err)
	}
	remove = func() { _ = os.RemoveAll(dir) }
	for name, d := range files {
		if err := link(s, dir, name, d); err != nil {
			remove()
			return "", nil, fmt.Errorf("file %q: %w", manifest.Clip(name), err)
		}
	}
	return dir, remove, nil
}

func link(s *store.Store, dir, name string, d digest.Digest) error {
	if name != filepath.Base(name) || !filepath.IsLocal(name) || name == "." {
		return errors.New("it is not a plain file name")
	}
	path, err := filePath(s, d)
	if err != nil {
		return err
	}
	to := filepath.Join(dir, name)
	if err = os.Link(path, to); err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.Symlink(path, to) // some file systems do not support hard links
}

// UsedUploads records that an image was created from uploads. They are kept for another hour, until the next collection
// or upload after that.
func UsedUploads(s *store.Store, list ...digest.Digest) {
	at := s.Now().Add(usedAge - Age)
	for _, d := range list {
		if manifest.ValidDigest(d) {
			_ = os.Chtimes(uploadPath(s, d), at, at) // no effect if the digest is a blob
		}
	}
}

// dropUploads removes expired uploads. A process that is reading one keeps it open or has a link to it.
func dropUploads(s *store.Store) {
	list, err := Leftovers(s)
	if err != nil {
		return
	}
	for _, l := range list {
		if l.Kind == leftUpload && Stale(s, l, false, nil) {
			RemoveLeftover(s, l)
		}
	}
}
