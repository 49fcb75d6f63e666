package hub

import (
	"context"
	"crypto/sha1" //nolint:gosec // git's name of a blob, not a signature
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
)

// content hashes the bytes of a file as its etag does: SHA-256, or git's SHA-1. Some look-alikes of the hub name small
// files by their plain SHA-1.
// https://git-scm.com/book/en/v2/Git-Internals-Git-Objects
type content struct {
	want   string
	hashes []hash.Hash
}

// newContent returns what hashes a file of a size, or nil if its etag is no known hash.
func newContent(etag string, size int64) *content {
	switch {
	case !isHex(etag):
		return nil
	case len(etag) == 2*sha256.Size:
		return &content{etag, []hash.Hash{sha256.New()}}
	case len(etag) == 2*sha1.Size:
		git := sha1.New() //nolint:gosec // as above
		fmt.Fprintf(git, "blob %d\x00", size)
		return &content{etag, []hash.Hash{git, sha1.New()}} //nolint:gosec // as above
	}
	return nil
}

func (c *content) Write(p []byte) (int, error) {
	for _, h := range c.hashes {
		h.Write(p)
	}
	return len(p), nil
}

// check returns an error if what was written is not the wanted content.
func (c *content) check(name string) error {
	for _, h := range c.hashes {
		if hex.EncodeToString(h.Sum(nil)) == c.want {
			return nil
		}
	}
	return checksumError(name, hex.EncodeToString(c.hashes[0].Sum(nil)), c.want)
}

// read hashes a reader to its end.
func (c *content) read(ctx context.Context, r io.Reader) error {
	buf := make([]byte, 1<<20)
	for {
		n, err := r.Read(buf)
		_, _ = c.Write(buf[:n])
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
	}
}

func checksumError(name, have, want string) error {
	return fmt.Errorf("%s: %w: it is %s, and the hub publishes %s; run this again, and if that does not help, "+
		"the hub's copy is damaged", name, ErrChecksum, have, want)
}
