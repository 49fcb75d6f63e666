package source

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ingotml/ingot/safetensors"
	"github.com/opencontainers/go-digest"
)

// Origin is a checkpoint folder, or an image in the store.
type Origin struct {
	Image digest.Digest `json:"image,omitempty"` // manifest digest
	Files []OriginFile  `json:"files,omitempty"` // files read, sorted by name
}

// OriginFile is a file of a checkpoint. Its name is relative to the folder.
type OriginFile struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256,omitempty"` // only if requested
}

// Identity identifies the file that holds a tensor: equal identities have equal bytes.
type Identity struct {
	Name   string // without its folder
	Size   int64
	Time   time.Time
	Header [sha256.Size]byte
}

// Identity returns the identity of the tensor's file. Blobs have none but their digest.
func (t Tensor) Identity() (id Identity, ok bool, err error) {
	s, ok := t.place.(shard)
	if !ok {
		return Identity{}, false, nil
	}
	header, err := json.Marshal(s.tensor.File.Header())
	return Identity{filepath.Base(t.Path), s.size, s.time.UTC(), sha256.Sum256(header)}, true, err
}

// Origin describes the source. With hash, it reads all files for their checksums.
func (src *Source) Origin(ctx context.Context, hash bool) (Origin, error) {
	if src.IsImage() {
		return Origin{Image: src.image}, nil
	}
	var o Origin
	add := func(name string, size int64, sum []byte) {
		f := OriginFile{Name: name, Size: size}
		if hash {
			f.SHA256 = hex.EncodeToString(sum)
		}
		o.Files = append(o.Files, f)
	}
	for _, f := range src.Files {
		if f.Source != "" {
			add(f.Name, f.origin.size, f.origin.sum[:])
		}
	}
	for _, f := range src.checkpoint.Files() {
		w, at, ok := src.fileIn(f)
		if !ok {
			continue
		}
		var sum []byte
		if hash {
			var err error
			if sum, err = HashFile(ctx, w.Path); err != nil {
				return o, err
			}
			if err := w.Unchanged(); err != nil {
				return o, err
			}
		}
		add(w.File, at.size, sum)
	}
	slices.SortFunc(o.Files, func(a, b OriginFile) int { return cmp.Compare(a.Name, b.Name) })
	return o, nil
}

// fileIn returns any tensor in a file, and its place, which has the file's size and time at opening.
func (src *Source) fileIn(f *safetensors.File) (Tensor, shard, bool) {
	for _, list := range [][]Tensor{src.tensors, src.unlisted} {
		for _, w := range list {
			for _, part := range w.Parts() {
				if at, ok := part.place.(shard); ok && part.Path == f.Path() {
					return part, at, true
				}
			}
		}
	}
	return Tensor{}, shard{}, false // no tensor of the file is used
}

// hashSize is the number of bytes hashed at a time.
const hashSize = 1 << 20

// HashFile returns the SHA-256 of a file.
func HashFile(ctx context.Context, path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	buf := make([]byte, hashSize)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n, err := f.Read(buf)
		h.Write(buf[:n])
		if err == io.EOF {
			return h.Sum(nil), nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
	}
}
