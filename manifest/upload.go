package manifest

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

	"github.com/opencontainers/go-digest"
)

// An upload is a file that somebody sends ahead of the create that reads it: ingest/upload-HEX, HEX being its SHA-256. It is whole,
// synced and read-only.

const (
	uploadPrefix = "upload-" // and the digits of the digest
	folderPrefix = "files-"  // of the folders that Folder makes
)

// usedAge is how long an upload stays after a create has read it, for others that begin with the same files.
const usedAge = time.Hour

// UploadOptions are those of [Store.PutUpload].
type UploadOptions struct {
	Size     int64 // bytes that will come, where the sender says so; 0: unknown
	KeepFree int64 // bytes that the upload leaves free on the disk
}

// PutUpload keeps the bytes of r, whose digest has to be d, for a later [Store.Folder]. Other bytes are a [*MismatchError], and
// a disk that has no room for them is an [ErrNoSpace]; after any error nothing of them stays. Collections keep an upload for
// [IngestAge], and for an hour once it was used. PutUpload does not hold [Store.Lock] while it reads, so r may take any time.
func (s *Store) PutUpload(ctx context.Context, d digest.Digest, r io.Reader, o UploadOptions) error {
	if err := s.putUpload(ctx, d, r, o); err != nil {
		return fmt.Errorf("upload %s: %w", clip(string(d)), s.fullDisk(err))
	}
	return nil
}

func (s *Store) putUpload(ctx context.Context, d digest.Digest, r io.Reader, o UploadOptions) error {
	if !validDigest(d) {
		return errors.New("not a sha256 digest")
	}
	release, err := s.Lock(ctx)
	if err != nil {
		return err
	}
	s.dropUploads() // makes room
	release()
	f, err := s.newSending(ctx, o)
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
	return f.publish(ctx, s.uploadPath(d))
}

func (s *Store) uploadPath(d digest.Digest) string {
	return s.path(ingestDir, uploadPrefix+d.Encoded())
}

// HasUpload reports whether [Store.Folder] finds a file with this digest: an upload, or a blob. An upload that was about to go
// stays.
func (s *Store) HasUpload(d digest.Digest) bool {
	if !validDigest(d) {
		return false
	}
	info, err := os.Lstat(s.uploadPath(d))
	if err != nil {
		_, err = s.filePath(d)
		return err == nil
	}
	if now := s.now(); now.Sub(info.ModTime()) > IngestAge-2*usedAge { // else its date, which a create that goes on looks at, is left alone
		_ = os.Chtimes(s.uploadPath(d), now, now)
	}
	return true
}

// filePath is where the bytes with this digest lie.
func (s *Store) filePath(d digest.Digest) (string, error) {
	if !validDigest(d) {
		return "", fmt.Errorf("%q is not a sha256 digest: %w", clip(string(d)), ErrBlobMissing)
	}
	for _, path := range []string{s.uploadPath(d), s.BlobPath(d)} {
		info, err := os.Lstat(path)
		if err == nil && info.Mode().IsRegular() {
			return path, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "", fmt.Errorf("%s: %w", d, ErrBlobMissing)
}

// Folder makes a folder of files that are uploads, or blobs of the store, under names of the caller's choice: what a create can read
// as a checkpoint. A digest that is not here is an [ErrBlobMissing]; names have to be plain ones. The caller holds [Store.Lock]
// until it calls remove, which takes the folder away and leaves the files.
func (s *Store) Folder(files map[string]digest.Digest) (dir string, remove func(), err error) {
	if err := os.MkdirAll(s.path(ingestDir), 0o755); err != nil {
		return "", nil, err
	}
	dir, err = os.MkdirTemp(s.path(ingestDir), folderPrefix+"*")
	if err != nil {
		return "", nil, fmt.Errorf("folder of files: %w", err)
	}
	remove = func() { _ = os.RemoveAll(dir) }
	for name, d := range files {
		if err := s.link(dir, name, d); err != nil {
			remove()
			return "", nil, fmt.Errorf("file %q: %w", clip(name), err)
		}
	}
	return dir, remove, nil
}

func (s *Store) link(dir, name string, d digest.Digest) error {
	if name != filepath.Base(name) || !filepath.IsLocal(name) || name == "." {
		return errors.New("it is no plain name of a file")
	}
	path, err := s.filePath(d)
	if err != nil {
		return err
	}
	to := filepath.Join(dir, name)
	if err = os.Link(path, to); err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.Symlink(path, to) // some file systems have no hard links
}

// UsedUploads says that an image was made of uploads: they stay for an hour, and then go with the next collection or upload.
func (s *Store) UsedUploads(list ...digest.Digest) {
	at := s.now().Add(usedAge - IngestAge)
	for _, d := range list {
		if validDigest(d) {
			_ = os.Chtimes(s.uploadPath(d), at, at) // one that is a blob has no such file
		}
	}
}

// dropUploads removes uploads whose time has come. Who reads one at present has it open, or a link to it.
func (s *Store) dropUploads() {
	list, err := s.leftovers()
	if err != nil {
		return
	}
	for _, l := range list {
		if l.kind == leftUpload && s.stale(l, false) {
			s.removeLeftover(l)
		}
	}
}
