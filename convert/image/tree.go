package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/foreign"
	"github.com/ingotml/ingot/manifest/store/disk"
	"github.com/ingotml/ingot/manifest/unpack"
	"github.com/opencontainers/go-digest"
)

// file is where the bytes of a file are: a part of a blob, or a file of the folder that archives are unpacked to.
type file struct {
	blob     digest.Digest
	offset   int64
	size     int64
	unpacked string // path; "" for a part of a blob
}

// tree are the files of an image.
type tree struct {
	image  *Image
	files  map[string]file // by path
	names  unpack.Names
	upper  map[string]bool // the files of the layer that is being read, of a container image
	temp   string          // the folder of what is unpacked; "" as long as nothing is
	count  int             // of unpacked files
	remove func()
}

// readTree lists the files of the layers that a model is made of, and unpacks compressed archives.
func (i *Image) readTree(ctx context.Context) (*tree, error) {
	t := &tree{image: i, files: map[string]file{}, remove: func() {}}
	t.names.Mixed = i.Files.Container // its other files may be any
	for _, l := range i.Files.ForModel() {
		if l.Kind != "" && !l.Archive {
			continue // a text, which is a command of the Modelfile
		}
		if err := t.add(ctx, l); err != nil {
			t.remove()
			label := l.Path
			if label == "" {
				label = string(l.Digest)
			}
			return nil, fmt.Errorf("%s: %w: %s: %w", i.Name, ErrLayer, manifest.Clip(label), err)
		}
	}
	return t, nil
}

// add adds the files of a layer.
func (t *tree) add(ctx context.Context, l foreign.Layer) error {
	blob, err := t.image.Blob(l.Digest)
	if err != nil {
		return err
	}
	defer blob.Close()
	wrapping := unpack.Plain
	if l.Archive {
		if wrapping, err = unpack.WrappingOf(blob); err != nil {
			return err
		}
	}
	if wrapping == unpack.Plain && (!l.Archive || l.Path != "") {
		if f, ok := t.files[l.Path]; ok && f.blob == l.Digest {
			return nil // the same file twice
		}
		return t.put(l.Path, file{blob: l.Digest, size: l.Size})
	}
	if t.image.Files.Container {
		return t.addLayer(ctx, blob, l)
	}
	return unpack.Walk(ctx, blob, l.Size, func(m unpack.Member) error {
		if m.Is != "" {
			return fmt.Errorf("member %q is %s: %w", manifest.Clip(m.Path), m.Is, unpack.ErrArchive)
		}
		return t.member(l, m)
	})
}

// addLayer adds the files of a layer of a container image, whose links and devices are left out.
func (t *tree) addLayer(ctx context.Context, blob *os.File, l foreign.Layer) error {
	var gone unpack.Whiteouts
	t.upper = map[string]bool{}
	err := unpack.Walk(ctx, blob, l.Size, func(m unpack.Member) error {
		if is, err := gone.Add(m.Path); is || err != nil || m.Is != "" {
			return err
		}
		return t.member(l, m)
	})
	for name := range t.files {
		if !t.upper[name] && gone.Hide(name) {
			delete(t.files, name)
		}
	}
	return err
}

// member adds a member of a layer.
func (t *tree) member(l foreign.Layer, m unpack.Member) error {
	if m.Offset < 0 {
		return t.unpack(m)
	}
	if m.Offset+m.Size > l.Size {
		return fmt.Errorf("member %q is cut off: %w", manifest.Clip(m.Path), unpack.ErrArchive)
	}
	return t.put(m.Path, file{blob: l.Digest, offset: m.Offset, size: m.Size})
}

func (t *tree) put(name string, f file) error {
	if err := unpack.CheckPath(name); err != nil {
		return err
	}
	if err := t.names.Add(name); err != nil {
		return err
	}
	t.files[name] = f
	if t.upper != nil {
		t.upper[name] = true
	}
	return nil
}

// unpack writes a member of a compressed archive to the folder, under a number.
func (t *tree) unpack(m unpack.Member) (err error) {
	if t.temp == "" {
		if t.temp, t.remove, err = t.image.Temp(); err != nil {
			return err
		}
	}
	if err := disk.NewSpace(t.temp).Check(m.Size); err != nil {
		return err
	}
	t.count++
	to := filepath.Join(t.temp, strconv.Itoa(t.count))
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, m.Reader)
	if err = disk.NoSpace(errors.Join(err, out.Close())); err != nil {
		return err
	}
	return t.put(m.Path, file{size: m.Size, unpacked: to})
}
