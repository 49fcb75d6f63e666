package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// compileFlags apply to every translation unit. The wheel was built with NDEBUG, and we share its headers.
var compileFlags = []string{"-std=c++20", "-O2", "-DNDEBUG", "-fPIC", "-fvisibility=hidden", "-pthread"}

// unitFlags apply to units with these names, in any folder. They use instructions that not every processor of the
// architecture has, so the bridge selects them at run time; other architectures skip them. They contain the
// micro-kernels: GCC unrolls loops over arrays of vectors only from -O3 on.
var unitFlags = map[string]struct {
	arch  string
	flags []string
}{
	"avx2":       {"amd64", []string{"-O3", "-mavx2", "-mfma", "-mf16c"}},
	"avx512":     {"amd64", append([]string{"-O3"}, avx512...)},
	"avx512bf16": {"amd64", append(append([]string{"-O3"}, avx512...), "-mavx512bf16")},
	"neon":       {"arm64", []string{"-O3"}},
}

var avx512 = []string{
	"-mavx2", "-mfma", "-mf16c", "-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx512vnni",
}

// linkFlags link the library so that it finds libmlx by a relative path if it is not loaded yet, and leave no symbol
// undefined.
func linkFlags(goos string) []string {
	if goos == "darwin" {
		return []string{
			"-dynamiclib", "-pthread", "-Wl,-install_name,@rpath/libingot_mlx.dylib", "-Wl,-rpath,@loader_path/../mlx/lib",
		}
	}
	return []string{
		"-shared", "-pthread", "-Wl,-soname,libingot_mlx.so", "-Wl,-rpath,$ORIGIN/../mlx/lib", "-Wl,-z,defs",
	}
}

// source is one file of the bridge.
type source struct {
	name  string // path from the root, with slashes
	unit  bool   // a translation unit, not a header
	flags []string
	size  int64
}

// listSources returns the files that an architecture needs, sorted by path.
func listSources(sources fs.FS, arch string) ([]source, error) {
	var list []source
	units := 0
	err := fs.WalkDir(sources, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base, unit := strings.CutSuffix(path.Base(name), ".cc")
		if entry.IsDir() || !unit && !strings.HasSuffix(name, ".h") {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		src := source{name: name, unit: unit, size: info.Size()}
		if unit {
			if special, ok := unitFlags[base]; ok {
				if special.arch != arch {
					return nil
				}
				src.flags = special.flags
			}
			units++
		}
		list = append(list, src)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("bridge sources: %w", err)
	}
	if units == 0 {
		return nil, errors.New("bridge sources: no translation unit")
	}
	return list, nil
}

// errOldCompiler means that a compiler does not support -std=c++20. The next candidate may.
var errOldCompiler = errors.New("does not support C++20")

// buildBridge compiles the bridge in the folder tmp against an unpacked wheel and writes the library to out. It tries
// the compilers in order while they are too old, and returns the one that it used.
func (s *setup) buildBridge(ctx context.Context, compilers []compiler, wheel, tmp, out string) (compiler, error) {
	dir := filepath.Join(tmp, "src")
	list, err := listSources(s.sources, s.host.arch)
	if err != nil {
		return compiler{}, err
	}
	for _, src := range list {
		data, err := fs.ReadFile(s.sources, src.name)
		if err != nil {
			return compiler{}, fmt.Errorf("bridge sources: %w", err)
		}
		file := filepath.Join(dir, filepath.FromSlash(src.name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return compiler{}, err
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			return compiler{}, err
		}
	}
	units := slices.DeleteFunc(list, func(src source) bool { return !src.unit })
	// The largest first, so that a long compilation does not start last.
	slices.SortStableFunc(units, func(a, b source) int { return cmp.Compare(b.size, a.size) })

	var old []string
	for _, c := range compilers {
		s.Log("compiling bridge (%d files) with %s", len(units), c.version)
		err := s.compile(ctx, c, units, wheel, dir, out)
		if !errors.Is(err, errOldCompiler) {
			return c, err
		}
		old = append(old, c.String())
	}
	return compiler{}, failf(ErrNoCompiler, "no C++20 compiler found, only %s: %s", strings.Join(old, ", "),
		compilerRemedy)
}

func (s *setup) compile(ctx context.Context, c compiler, units []source, wheel, dir, out string) error {
	include := filepath.Join(wheel, "mlx", "include")
	includes := []string{"-I.", "-I" + include}
	if s.flavour == Metal {
		includes = append(includes, "-I"+filepath.Join(include, "metal_cpp"))
	}
	objects := make([]string, len(units))
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	for i, unit := range units {
		objects[i] = strings.TrimSuffix(unit.name, ".cc") + ".o"
		args := slices.Concat(compileFlags, unit.flags, includes, []string{"-c", unit.name, "-o", objects[i]})
		group.Go(func() error { return s.runCompiler(gctx, c, dir, args) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	libraries := []string{"-L" + filepath.Join(wheel, "mlx", "lib"), "-lmlx"}
	args := slices.Concat(linkFlags(s.host.os), []string{"-o", out}, objects, libraries)
	return s.runCompiler(ctx, c, dir, args)
}

func (s *setup) runCompiler(ctx context.Context, c compiler, dir string, args []string) error {
	args = slices.Concat(c.command[1:], args)
	// The compiler's temporary files are in dir, so they are removed with it even if the process is killed.
	out, err := s.command(ctx, dir, []string{"TMPDIR=" + dir, "LC_ALL=C"}, c.command[0], args...).CombinedOutput()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return compileError(c, string(out), err)
}

var (
	unknownStandard = regexp.MustCompile(`(?i)(unrecognized|unknown|invalid).*-?std=`)
	errorLine       = regexp.MustCompile(`(?i)\berror:|undefined reference|cannot find -l|undefined symbols`)
	noSpaceLine     = regexp.MustCompile(`No space left on device`)
)

// compileError summarizes a compiler's output in one line: the errors without GCC's notes.
func compileError(c compiler, output string, err error) error {
	if unknownStandard.MatchString(output) {
		return fmt.Errorf("%s: %w", c, errOldCompiler)
	}
	if noSpaceLine.MatchString(output) {
		return failf(ErrNoSpace, "compiling the bridge: no space left on device: "+
			"free some space, or set %s to a folder on another disk", EnvCache)
	}
	const most = 3
	var lines []string
	for _, line := range strings.Split(output, "\n") {
		if errorLine.MatchString(line) && len(lines) < most {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	if len(lines) == 0 {
		lines = append(firstLines(output, most), err.Error())
	}
	remedy := ""
	if c.old {
		remedy = ": " + compilerRemedy
	}
	return failf(ErrCompile, "the bridge does not compile with %s: %s%s", c, strings.Join(lines, " | "), remedy)
}
