package engine

import (
	"bytes"
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
	arch   string // "" means all; others skip the files
	flags  []string
	avx512 bool // targets without AVX-512 skip the files
}

// target is what an engine is compiled for.
type target struct {
	arch   string
	avx512 bool // has kernels for it; false if arch is not amd64
}

// skips reports whether the target leaves out a file.
func (t target) skips(name string) bool {
	isa, ok := isaUnits[strings.TrimSuffix(path.Base(name), ".cc")]
	return ok && (isa.arch != "" && isa.arch != t.arch || isa.avx512 && !t.avx512)
}

// flags returns the flags of all units.
func (t target) flags() []string {
	if t.arch == "amd64" && !t.avx512 {
		return append(slices.Clone(compileFlags), "-DINGOT_NO_AVX512")
	}
	return compileFlags
}

// isaUnits are the instruction sets. The files of one, in any folder, are named after it and contain its kernels. They
// use instructions that not every processor of the architecture has, so the bridge selects them at run time.
var isaUnits = map[string]isaUnit{
	"portable":   {},
	"avx2":       {"amd64", slices.Concat(kernels, avx2), false},
	"avx512":     {"amd64", slices.Concat(kernels, avx2, avx512), true},
	"avx512vbmi": {"amd64", slices.Concat(kernels, avx2, avx512, []string{"-mavx512vbmi"}), true},
	"avx512bf16": {"amd64", slices.Concat(kernels, avx2, avx512, []string{"-mavx512bf16"}), true},
	"neon":       {"arm64", kernels, false},
}

var (
	// kernels are the options of micro-kernels. GCC unrolls their loops over arrays of vectors only from -O3 on. The
	// position of an inner loop within the lines of the instruction cache made the same machine code up to a fifth slower;
	// without a fixed alignment it would move with every change of other code.
	kernels = []string{"-O3", "-falign-functions=64"}
	avx2    = []string{"-mavx2", "-mfma", "-mf16c"}
	avx512  = []string{"-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx512vnni"}
)

// source is one file of the bridge.
type source struct {
	name string // path from the root, with slashes
	data []byte
}

// listSources returns the files that a target needs, sorted by path.
func listSources(sources fs.FS, t target) ([]source, error) {
	var list []source
	err := fs.WalkDir(sources, ".", func(name string, entry fs.DirEntry, err error) error {
		ext := path.Ext(name)
		if err != nil || entry.IsDir() || ext != ".cc" && ext != ".h" {
			return err
		}
		if t.skips(name) {
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
	cost  int // a guess of the time to compile it: bytes of its files and of the bridge's headers that they include
}

// matmulFolder has the kernels that take as long to compile as those of all other folders together, streamFolder more
// of them.
const (
	matmulFolder = "cpu/matmul"
	streamFolder = "cpu/matmul/stream"
)

// unitName returns the unit of a .cc file and the instruction set's flags. It puts as much together as leaves units of
// similar length: a file alone takes as long for the headers of MLX, of intrinsics and of the standard library as for
// its own code. The units are
//   - ops: the operations,
//   - bridge: everything else that is not a kernel, which is scheduling without loops over elements. -O1 takes 70 % of
//     -O2's time for it,
//   - for each instruction set, matmul-ISA, stream-ISA and kernels-ISA, which has those of the other folders.
func unitName(file string) (name string, flags []string) {
	base := strings.TrimSuffix(path.Base(file), ".cc")
	isa, isKernel := isaUnits[base]
	switch {
	case isKernel && path.Dir(file) == matmulFolder:
		return "matmul-" + base, isa.flags
	case isKernel && path.Dir(file) == streamFolder:
		return "stream-" + base, isa.flags
	case isKernel:
		return "kernels-" + base, isa.flags
	case strings.HasPrefix(file, "ops/"):
		return "ops", nil
	}
	return "bridge", []string{"-O1"}
}

// makeUnits returns the translation units of sources, the most costly first, so that a long compilation does not start
// last.
func makeUnits(list []source) ([]unit, error) {
	byName := map[string]source{}
	for _, src := range list {
		byName[src.name] = src
	}
	var units []unit
	index := map[string]int{}
	for _, src := range list {
		if path.Ext(src.name) != ".cc" {
			continue
		}
		name, flags := unitName(src.name)
		i, ok := index[name]
		if !ok {
			i = len(units)
			index[name] = i
			units = append(units, unit{name: name, flags: flags})
		}
		units[i].files = append(units[i].files, src.name)
	}
	for i := range units {
		units[i].cost = includedBytes(units[i].files, byName, map[string]bool{})
	}
	if len(units) == 0 {
		return nil, errors.New("bridge sources: no translation unit")
	}
	slices.SortStableFunc(units, func(a, b unit) int { return cmp.Compare(b.cost, a.cost) })
	return units, nil
}

// includedBytes returns the bytes of the named sources and of those that they include, each of them once.
func includedBytes(names []string, sources map[string]source, seen map[string]bool) int {
	size := 0
	for _, name := range names {
		src, ok := sources[name]
		if !ok || seen[name] {
			continue
		}
		seen[name] = true
		size += len(src.data)
		size += includedBytes(includes(src.data), sources, seen)
	}
	return size
}

// includes returns the names in the lines `#include "NAME"`. Every start of the program needs them, for the key of the
// engine's folder, so it does not use a regular expression, which takes 13 ms for all units.
func includes(data []byte) (names []string) {
	mark := []byte(`#include "`)
	for at := 0; ; {
		next := bytes.Index(data[at:], mark)
		if next < 0 {
			return names
		}
		begin := at + next
		line, _, _ := bytes.Cut(data[begin+len(mark):], []byte("\n"))
		at = begin + len(mark)
		if name, ok := bytes.CutSuffix(line, []byte(`"`)); ok && (begin == 0 || data[begin-1] == '\n') {
			names = append(names, string(name))
		}
	}
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
