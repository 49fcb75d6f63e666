package engine

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// buildOnly lists the parts of a wheel that are needed only to compile against it.
var buildOnly = []string{"bin", "mlx/share", "mlx/lib/cmake"}

// linkTree fills the folder to with the files of the wheel in from that are needed at run time. It makes hard links, or
// copies if the file system does not support links. CUDA needs the headers too: MLX compiles kernels against them.
func linkTree(from, to string, f Flavour) error {
	skip := map[string]bool{}
	for _, name := range buildOnly {
		skip[name] = true
	}
	if f == CPU || f == Metal {
		skip["mlx/include"] = true
	}
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		switch {
		case entry.IsDir() && skip[filepath.ToSlash(name)]:
			return filepath.SkipDir
		case entry.IsDir():
			return os.MkdirAll(target, 0o755)
		case os.Link(path, target) == nil:
			return nil
		}
		return copyFile(path, target)
	})
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, info.Mode().Perm())
	if err != nil {
		return err
	}
	defer func() {
		if closed := out.Close(); err == nil {
			err = closed
		}
	}()
	_, err = io.Copy(out, in)
	return err
}
