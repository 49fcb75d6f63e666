package safetensors

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ingotml/ingot/internal/limits/place"
)

// Dir is a local folder. Its symbolic links may lead to files in it, and those of a snapshot in a hub's cache to blobs
// of the same repository. Others are an ErrOutside: whoever made the folder would otherwise choose which of the user's
// private files become part of an image. The path of the folder itself may have links, because the user named it.
//
// Anything but a regular file is an error of Open, and is not opened.
type Dir string

// LinkedDir is a local folder whose links lead to any file, because the user said so or the program made them.
type LinkedDir string

// Local returns a local folder, with links to any file or without.
func Local(path string, anyLinks bool) Folder {
	if anyLinks {
		return LinkedDir(path)
	}
	return Dir(path)
}

// LocalFile returns the folder of a file that the user named, and its name. That file may be a link to any file.
func LocalFile(path string, anyLinks bool) (Folder, string) {
	dir, name := filepath.Dir(path), filepath.Base(path)
	if anyLinks {
		return LinkedDir(dir), name
	}
	return named{Dir(dir), name}, name
}

// named is a folder of which the user named a file.
type named struct {
	Dir
	file string
}

func (n named) of(name string) Folder {
	if name == n.file {
		return LinkedDir(n.Dir)
	}
	return n.Dir
}

func (n named) Open(name string) (fs.File, error)     { return n.of(name).Open(name) }
func (n named) Stat(name string) (fs.FileInfo, error) { return n.of(name).Stat(name) }

// Path returns the file's path in the operating system's notation.
func (d LinkedDir) Path(name string) string {
	return filepath.Join(string(d), filepath.FromSlash(name))
}

// Open opens a file.
func (d LinkedDir) Open(name string) (fs.File, error) {
	if _, err := d.Stat(name); err != nil {
		return nil, err
	}
	f, err := place.Open(d.Path(name))
	if err != nil {
		return nil, err // not f, which would be an interface that is not nil
	}
	return f, nil
}

// Stat describes a file; see [Stat].
func (d LinkedDir) Stat(name string) (fs.FileInfo, error) { return Stat(d.Path(name)) }

// ReadDir lists a folder, sorted by name.
func (d LinkedDir) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(d.Path(name)) }

// Path returns the file's path in the operating system's notation.
func (d Dir) Path(name string) string { return LinkedDir(d).Path(name) }

// Open opens a file.
func (d Dir) Open(name string) (f fs.File, err error) {
	err = d.inside(name, func(root *os.Root, at string) error {
		info, err := root.Stat(at)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s: %w", d.Path(name), place.ErrNotRegular)
		}
		opened, err := root.OpenFile(at, os.O_RDONLY|place.NonBlocking, 0)
		if err != nil {
			return err
		}
		if info, err = opened.Stat(); err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%s: %w", d.Path(name), place.ErrNotRegular)
		}
		if err != nil {
			return errors.Join(err, opened.Close())
		}
		f = opened
		return nil
	})
	return f, err
}

// Stat describes a file or folder. A link without a target is ErrIncomplete, as in [Stat].
func (d Dir) Stat(name string) (info fs.FileInfo, err error) {
	err = d.inside(name, func(root *os.Root, at string) (err error) {
		info, err = root.Stat(at)
		return err
	})
	return info, err
}

// ReadDir lists a folder, sorted by name.
func (d Dir) ReadDir(name string) (list []fs.DirEntry, err error) {
	err = d.inside(name, func(root *os.Root, at string) error {
		f, err := root.OpenFile(at, os.O_RDONLY|place.NonBlocking, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		list, err = f.ReadDir(-1)
		slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		return err
	})
	return list, err
}

// inside calls do with a folder that name may be in, and its name there. What os.Root opens is in its folder, even if
// somebody changes links meanwhile; it refuses absolute links, and knows nothing of hub caches, so that a name that it
// does not find is resolved and tried again.
func (d Dir) inside(name string, do func(root *os.Root, at string) error) error {
	err := inRoot(string(d), filepath.FromSlash(name), do)
	if err == nil || errors.Is(err, place.ErrNotRegular) {
		return err
	}
	top, at, errLink := d.resolve(name)
	if errLink != nil {
		return errLink
	}
	if err = inRoot(top, at, do); err == nil || errors.Is(err, place.ErrNotRegular) {
		return err
	}
	var inner *fs.PathError // of the name in the folder
	if errors.As(err, &inner) {
		return &fs.PathError{Op: "open", Path: d.Path(name), Err: inner.Err}
	}
	return err
}

func inRoot(dir, name string, do func(root *os.Root, at string) error) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return do(root, name)
}

// resolve follows all links of a name. It returns the folder that the target may be in and the target's name there.
func (d Dir) resolve(name string) (top, at string, err error) {
	dir, err := filepath.Abs(string(d))
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", "", err
	}
	target, err := filepath.EvalSymlinks(filepath.Join(dir, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) && path.Dir(name) != "." {
		if _, _, errAbove := d.resolve(path.Dir(name)); errors.Is(errAbove, ErrOutside) {
			return "", "", errAbove
		}
	}
	if err != nil {
		_, errStat := Stat(d.Path(name)) // which says what a link without a target means
		return "", "", cmp.Or(errStat, err)
	}
	for _, top := range []string{dir, hubBlobs(dir)} {
		if at, err := filepath.Rel(top, target); top != "" && err == nil && filepath.IsLocal(at) {
			return top, at, nil
		}
	}
	return "", "", fmt.Errorf("%s: %w: it leads to %s; if that belongs to the model, name the folder that has it, or "+
		"copy it, or use --follow-links", d.Path(name), ErrOutside, quote(target))
}

// hubBlobs returns the folder of the blobs that a snapshot in the cache of huggingface_hub has links to; "" if dir is
// not in one. https://huggingface.co/docs/huggingface_hub/guides/manage-cache
func hubBlobs(dir string) string {
	for ; ; dir = filepath.Dir(dir) {
		above := filepath.Dir(dir)
		repository := filepath.Dir(above)
		if repository == above {
			return ""
		}
		if filepath.Base(above) == "snapshots" && strings.HasPrefix(filepath.Base(repository), "models--") {
			return filepath.Join(repository, "blobs")
		}
	}
}

// Stat describes a local file or folder. A link without a target is ErrIncomplete: in a download cache, links exist
// before their targets.
func Stat(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if target, errLink := os.Readlink(path); errLink == nil {
			return nil, fmt.Errorf("%s: %w: it is a link to %s, which does not exist: the download is incomplete; "+
				"download it again", path, ErrIncomplete, quote(target))
		}
	}
	return info, err
}
