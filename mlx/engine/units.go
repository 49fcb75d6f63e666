package engine

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
)

// isaUnit says how the kernels of an instruction set are compiled.
type isaUnit struct {
	arch  string // "" means all; others skip the files
	flags []string
}

// isaUnits are the instruction sets. The files of one, in any folder, are named after it. They use instructions that
// not every processor of the architecture has, so the bridge selects them at run time. They contain the micro-kernels:
// GCC unrolls loops over arrays of vectors only from -O3 on.
var isaUnits = map[string]isaUnit{
	"portable":   {},
	"avx2":       {"amd64", []string{"-O3", "-mavx2", "-mfma", "-mf16c"}},
	"avx512":     {"amd64", append([]string{"-O3"}, avx512...)},
	"avx512bf16": {"amd64", append(append([]string{"-O3"}, avx512...), "-mavx512bf16")},
	"neon":       {"arm64", []string{"-O3"}},
}

var avx512 = []string{
	"-mavx2", "-mfma", "-mf16c", "-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx512vnni",
}

// source is one file of the bridge.
type source struct {
	name string // path from the root, with slashes
	data []byte
}

// listSources returns the files that an architecture needs, sorted by path.
func listSources(sources fs.FS, arch string) ([]source, error) {
	var list []source
	err := fs.WalkDir(sources, ".", func(name string, entry fs.DirEntry, err error) error {
		ext := path.Ext(name)
		if err != nil || entry.IsDir() || ext != ".cc" && ext != ".h" {
			return err
		}
		if isa, ok := isaUnits[strings.TrimSuffix(path.Base(name), ".cc")]; ok && isa.arch != "" && isa.arch != arch {
			return nil
		}
		data, err := fs.ReadFile(sources, name)
		list = append(list, source{name: name, data: data})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("bridge sources: %w", err)
	}
	return list, nil
}

// unit is a translation unit. It includes its files.
type unit struct {
	name  string // without a folder and extension
	files []string
	flags []string
	cost  int // a guess of the time to compile it: bytes of its files and of the headers in the folders of kernels
}

// makeUnits returns the translation units of sources, the most costly first, so that a long compilation does not start
// last. The kernels of an instruction set are a unit for each folder that has them. All other files of a top-level
// folder are one unit: compiling one of these alone takes as long for MLX's headers and for instances of the standard
// library's templates as for its own code.
func makeUnits(list []source) ([]unit, error) {
	headers := map[string]int{} // bytes of the headers of a folder
	for _, src := range list {
		if path.Ext(src.name) == ".h" {
			headers[path.Dir(src.name)] += len(src.data)
		}
	}
	var units []unit
	index := map[string]int{}
	for _, src := range list {
		base, ok := strings.CutSuffix(src.name, ".cc")
		if !ok {
			continue
		}
		u := unit{cost: len(src.data)}
		if isa, ok := isaUnits[path.Base(base)]; ok {
			u.name, u.flags, u.cost = strings.ReplaceAll(base, "/", "-"), isa.flags, u.cost+headers[path.Dir(src.name)]
		} else {
			u.name, _, _ = strings.Cut(base, "/")
		}
		i, ok := index[u.name]
		if !ok {
			i = len(units)
			index[u.name] = i
			units = append(units, unit{name: u.name, flags: u.flags})
		}
		units[i].files = append(units[i].files, src.name)
		units[i].cost += u.cost
	}
	if len(units) == 0 {
		return nil, errors.New("bridge sources: no translation unit")
	}
	slices.SortStableFunc(units, func(a, b unit) int { return cmp.Compare(b.cost, a.cost) })
	return units, nil
}

// writeSources writes the sources and, beside them, a file for each unit.
func writeSources(dir string, list []source, units []unit) error {
	files := slices.Clone(list)
	for _, u := range units {
		var text []byte
		for _, name := range u.files {
			text = fmt.Appendf(text, "#include %q\n", name)
		}
		files = append(files, source{u.file(), text})
	}
	for _, src := range files {
		file := filepath.Join(dir, filepath.FromSlash(src.name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, src.data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (u unit) file() string { return "unit-" + u.name + ".cc" }
