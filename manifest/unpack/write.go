package unpack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ingotml/ingot/internal/atomicfile"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/foreign"
	"github.com/ingotml/ingot/manifest/store/disk"
	"github.com/opencontainers/go-digest"
)

// Options control what [Write] writes.
type Options struct {
	Patterns []string // the files, as [foreign.Matches] selects them; none: all
	Force    bool     // replace files that exist
	Progress func(done, total int64)
	Note     func(text string) // receives what is left out
}

// File is a file that was written.
type File struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

// Blobs opens the blobs of an image.
type Blobs func(digest.Digest) (*os.File, error)

// ErrExists reports a file that is in the way of another one.
var ErrExists = errors.New("file exists")

// ErrNoMatch reports patterns that no file matches.
var ErrNoMatch = errors.New("no file matches")

// Write writes the files of an image to a folder, which it makes. It writes none if any fails.
func Write(ctx context.Context, img *foreign.Image, blobs Blobs, dir string, o Options) ([]File, error) {
	w := &writer{img: img, blobs: blobs, options: o, layers: map[string]int{}, files: map[string]int64{}}
	made, err := makeFolder(dir)
	if err != nil {
		return nil, err
	}
	err = w.write(ctx, dir)
	if err != nil && made != "" {
		removeEmpty(dir, made)
	}
	if err != nil {
		return nil, err
	}
	return w.list(), nil
}

// list returns the files, sorted by path.
func (w *writer) list() []File {
	var list []File
	for _, name := range slices.Sorted(maps.Keys(w.files)) {
		list = append(list, File{name, w.files[name]})
	}
	return list
}

// makeFolder makes a folder and those above it, and returns the first one that did not exist.
func makeFolder(dir string) (made string, err error) {
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		_, err := os.Stat(at)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		made = at
		if filepath.Dir(at) == at {
			break
		}
	}
	return made, os.MkdirAll(dir, 0o755)
}

// removeEmpty removes a folder and those above it up to first, as long as they are empty.
func removeEmpty(dir, first string) {
	for at := filepath.Clean(dir); os.Remove(at) == nil && at != first; at = filepath.Dir(at) {
	}
}

// CheckFree returns an [ErrExists] if a file of the image that its manifest names is in the folder already. It is for a
// check before files are downloaded.
func CheckFree(img *foreign.Image, dir string, o Options) error {
	if o.Force || img.Container {
		return nil
	}
	for _, l := range img.Layers {
		if !l.Archive && l.MayHold(o.Patterns) {
			if name := filepath.Join(dir, filepath.FromSlash(l.Path)); isThere(name) {
				return exists(name)
			}
		}
	}
	return nil
}

func isThere(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

func exists(name string) error {
	return fmt.Errorf("%s: %w; use --force to replace files, or another folder", name, ErrExists)
}

// writer writes an image to a folder below the destination, and moves its files up when all are complete.
type writer struct {
	img         *foreign.Image
	blobs       Blobs
	options     Options
	stage       *os.Root
	names       Names
	layers      map[string]int // of the files of a container image, the last layer that has it
	files       map[string]int64
	links       int
	done, total int64
	space       *disk.Space
}

func (w *writer) write(ctx context.Context, dir string) error {
	var wanted []int
	for n, l := range w.img.Layers {
		if l.MayHold(w.options.Patterns) || w.img.Container {
			wanted = append(wanted, n)
			w.total += l.Size
		}
	}
	w.space = disk.NewSpace(dir)
	if err := w.space.Check(w.total); err != nil && !w.img.Container {
		return err
	}
	stage, err := os.MkdirTemp(dir, atomicfile.TempPrefix+"*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	if w.stage, err = os.OpenRoot(stage); err != nil {
		return err
	}
	defer w.stage.Close()
	for _, n := range wanted {
		if err := w.layer(ctx, n); err != nil {
			return disk.NoSpace(err)
		}
	}
	if len(w.files) == 0 {
		return w.nothing()
	}
	if w.links > 0 && w.options.Note != nil {
		w.options.Note(fmt.Sprintf("%d links and devices of the container image are left out", w.links))
	}
	return w.publish(dir, filepath.Base(stage))
}

func (w *writer) nothing() error {
	if len(w.options.Patterns) == 0 {
		return fmt.Errorf("the image holds no files: %w", manifest.ErrUnknownManifest)
	}
	return fmt.Errorf("%w %s; --list shows the files", ErrNoMatch, strings.Join(w.options.Patterns, ", "))
}

// layer writes the files of a layer.
func (w *writer) layer(ctx context.Context, n int) error {
	l := w.img.Layers[n]
	blob, err := w.blobs(l.Digest)
	if err != nil {
		return err
	}
	defer blob.Close()
	archive := l.Archive
	if archive {
		wrapping, err := WrappingOf(blob)
		if err != nil {
			return err
		}
		archive = wrapping != Plain || l.Path == ""
	}
	label := manifest.Clip(l.Path)
	if label == "" {
		label = "layer " + string(l.Digest)
	}
	if !archive {
		if err := w.file(ctx, n, l, blob); err != nil {
			return fmt.Errorf("%s: %w", label, err)
		}
		return nil
	}
	var gone Whiteouts
	err = Walk(ctx, blob, l.Size, func(m Member) error { return w.member(ctx, n, m, &gone) })
	if err != nil {
		return fmt.Errorf("archive %s: %w", label, err)
	}
	if w.img.Container {
		w.hide(n, &gone)
	}
	w.report(l.Size)
	return nil
}

// file writes a layer that is a file.
func (w *writer) file(ctx context.Context, n int, l foreign.Layer, blob *os.File) error {
	if !foreign.Matches(w.options.Patterns, l.Path) {
		return nil
	}
	if was, there := w.layers[l.Path]; there && w.img.Layers[was].Digest == l.Digest {
		return nil // the same file twice
	}
	if err := CheckPath(l.Path); err != nil {
		return err
	}
	hash := digest.SHA256.Digester()
	in := io.TeeReader(io.LimitReader(blob, l.Size+1), hash.Hash())
	size, err := w.put(ctx, n, l.Path, in, true)
	if err == nil && hash.Digest() != l.Digest {
		err = manifest.Corrupt(l.Digest, hash.Digest())
	}
	w.files[l.Path] = size
	return err
}

// member writes a member of an archive. A whiteout of a container image is added to gone instead.
func (w *writer) member(ctx context.Context, n int, m Member, gone *Whiteouts) error {
	if w.img.Container {
		if is, err := gone.Add(m.Path); is || err != nil {
			return err
		}
	}
	if !foreign.Matches(w.options.Patterns, m.Path) {
		return nil
	}
	if m.Is != "" {
		if w.img.Container {
			w.links++
			return nil
		}
		return fmt.Errorf("member %q is %s: %w", manifest.Clip(m.Path), m.Is, ErrArchive)
	}
	if err := w.space.Check(m.Size); err != nil {
		return err
	}
	size, err := w.put(ctx, n, m.Path, m.Reader, false)
	if err == nil && size != m.Size {
		err = fmt.Errorf("member %q: %d of %d bytes: %w", manifest.Clip(m.Path), size, m.Size, ErrArchive)
	}
	w.files[m.Path] = size
	return err
}

// put writes one file below the stage.
func (w *writer) put(ctx context.Context, n int, name string, in io.Reader, report bool) (int64, error) {
	if w.img.Container {
		w.replace(n, name)
	}
	if err := w.names.Add(name); err != nil {
		return 0, err
	}
	w.layers[name] = n
	if above := path.Dir(name); above != "." {
		if err := w.stage.MkdirAll(above, 0o755); err != nil {
			return 0, err
		}
	}
	out, err := w.stage.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, err
	}
	var size int64
	for err == nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
			break
		}
		var n int64
		n, err = io.CopyN(out, in, 4<<20)
		if size += n; report {
			w.report(n)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return size, errors.Join(err, out.Close())
}

func (w *writer) report(n int64) {
	w.done += n
	if w.options.Progress != nil {
		w.options.Progress(w.done, w.total)
	}
}

// publish moves the files up from the stage to the folder.
func (w *writer) publish(dir, stage string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	files := w.list()
	for _, f := range files {
		info, err := root.Lstat(f.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case !w.options.Force:
			return exists(filepath.Join(dir, filepath.FromSlash(f.Path)))
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is no regular file, and is not replaced: %w",
				filepath.Join(dir, filepath.FromSlash(f.Path)), ErrExists)
		}
	}
	for n, f := range files {
		if above := path.Dir(f.Path); above != "." {
			err = root.MkdirAll(above, 0o755)
		}
		if err == nil {
			err = root.Rename(path.Join(stage, f.Path), f.Path)
		}
		if err != nil {
			if !w.options.Force {
				for _, moved := range files[:n] {
					_ = root.Remove(moved.Path)
				}
			}
			return err
		}
	}
	return nil
}
