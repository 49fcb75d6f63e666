package source

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/ingotml/ingot/safetensors"
	"github.com/opencontainers/go-digest"
)

// Origin is a checkpoint folder, a repository of a hub, or an image in the store.
type Origin struct {
	Image digest.Digest `json:"image,omitempty"` // manifest digest
	// Repository is the name of a hub's repository, as hf.co/ORG/REPO; Commit is the one that was read.
	Repository string       `json:"repository,omitempty"`
	Revision   string       `json:"revision,omitempty"` // as asked for
	Commit     string       `json:"commit,omitempty"`
	Files      []OriginFile `json:"files,omitempty"` // files read, sorted by name
	// As is the model type that it was read as, if config.json declares another one.
	As *OriginType `json:"as,omitempty"`
}

// OriginType is a model type that was asked for.
type OriginType struct {
	Type     string `json:"type"`
	Declared string `json:"declared"` // what config.json declares, in words
}

// OriginFile is a file of a checkpoint. Its name is relative to the folder.
type OriginFile struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	ETag   string `json:"etag,omitempty"`   // the hub's hash of the file, if all bytes were compared with it
	SHA256 string `json:"sha256,omitempty"` // only if requested
}

// Identity identifies the file that holds a tensor: equal identities have equal bytes.
type Identity struct {
	Name   string // without its folder
	Size   int64
	Time   time.Time
	Header [sha256.Size]byte
	Commit string `json:",omitempty"` // of a remote folder, instead of a time
	ETag   string `json:",omitempty"`
}

// Identity returns the identity of the tensor's file. Blobs have none but their digest.
func (t Tensor) Identity() (id Identity, ok bool, err error) {
	s, ok := t.place.(shard)
	if !ok {
		return Identity{}, false, nil
	}
	header, err := json.Marshal(s.tensor.File.Header())
	id = Identity{Name: s.name, Size: s.size, Time: s.time.UTC(), Header: sha256.Sum256(header)}
	if r, _, ok := t.remote(); ok {
		_, _, id.Commit = r.Commit()
		id.ETag, id.Time = r.ETag(s.name), time.Time{}
	}
	return id, true, err
}

// Origin describes the source. With hash, it reads all files for their checksums.
func (src *Source) Origin(ctx context.Context, hash bool) (Origin, error) {
	var o Origin
	if src.retyped.Declared != "" {
		o.As = &OriginType{src.options.As, src.retyped.Declared}
	}
	if o.Image = src.image; src.IsImage() {
		return o, nil
	}
	r, remote := src.folder.(Remote)
	if remote {
		o.Repository, o.Revision, o.Commit = r.Commit()
	}
	add := func(name string, size int64, sum []byte) {
		f := OriginFile{Name: name, Size: size}
		if remote && r.Compared(name) {
			f.ETag = r.ETag(name)
		}
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
			if sum, err = HashFile(ctx, f); err != nil {
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
func HashFile(ctx context.Context, f *safetensors.File) ([]byte, error) {
	h := sha256.New()
	buf := make([]byte, hashSize)
	for at, end := int64(0), f.Header().Size; at < end; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p := buf[:min(hashSize, end-at)]
		if err := ReadFull(f, p, at); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(f.Path()), err)
		}
		h.Write(p)
		at += int64(len(p))
	}
	return h.Sum(nil), nil
}
