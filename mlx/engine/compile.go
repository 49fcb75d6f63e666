package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// compileFlags apply to every translation unit. The wheel was built with NDEBUG, and we share its headers.
var compileFlags = []string{"-std=c++20", "-O2", "-DNDEBUG", "-fPIC", "-fvisibility=hidden", "-pthread"}

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

// errOldCompiler means that a compiler does not support -std=c++20. The next candidate may.
var errOldCompiler = errors.New("does not support C++20")

// buildBridge compiles the bridge in the folder tmp against an unpacked wheel and writes the library to out. It tries
// the compilers in order while they are too old, and returns the one that it used.
func (s *setup) buildBridge(ctx context.Context, compilers []compiler, wheel, tmp, out string) (compiler, error) {
	dir := filepath.Join(tmp, "src")
	list, err := listSources(s.sources, s.target)
	if err != nil {
		return compiler{}, err
	}
	units, err := makeUnits(list)
	if err != nil {
		return compiler{}, err
	}
	if err := writeSources(dir, list, units); err != nil {
		return compiler{}, err
	}

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

func (s *setup) compile(ctx context.Context, c compiler, units []unit, wheel, dir, out string) error {
	include := filepath.Join(wheel, "mlx", "include")
	includes := []string{"-I.", "-I" + include}
	if s.flavour == Metal {
		includes = append(includes, "-I"+filepath.Join(include, "metal_cpp"))
	}
	objects := make([]string, len(units))
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	for i, u := range units {
		objects[i] = u.name + ".o"
		args := slices.Concat(s.target.flags(), u.flags, includes, []string{"-c", u.file(), "-o", objects[i]})
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
