package engine

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/internal/child"
)

// usable returns false for macOS's stubs in /usr/bin if the developer tools are not installed: running one opens a
// dialog.
func (s *setup) usable(ctx context.Context, path string) bool {
	if s.host.os != "darwin" || filepath.Dir(path) != "/usr/bin" {
		return true
	}
	_, err := s.askVersion(ctx, "/usr/bin/xcode-select", "-p")
	return err == nil
}

// python is an interpreter with pip.
type python struct {
	path string
	pip  string // pip's version
}

// pipMajor.pipMinor is the first version of pip that supports the manylinux_2_N tags: https://peps.python.org/pep-0600/
const pipMajor, pipMinor = 20, 3

var pipVersion = regexp.MustCompile(`^pip ((\d+)\.(\d+)[^ ]*)`)

func (s *setup) findPython(ctx context.Context) (python, error) {
	named, from := s.Python, "the requested Python"
	if named == "" {
		named, from = s.getenv(EnvPython), EnvPython
	}
	if named != "" {
		p, err := s.tryPython(ctx, named)
		if err != nil {
			return p, failf(ErrNoPython, "%s, %s, is not usable: %w", from, named, err)
		}
		return p, nil
	}
	var found []string
	for _, name := range []string{"python3", "python"} {
		p, err := s.tryPython(ctx, name)
		if err == nil {
			return p, nil
		}
		if p.path != "" {
			found = append(found, p.path+": "+err.Error())
		}
	}
	if len(found) > 0 {
		return python{}, failf(ErrNoPython, "no Python 3 with pip, which downloads the engine (%s); "+
			"or set %s to another Python", strings.Join(found, "; "), EnvPython)
	}
	return python{}, failf(ErrNoPython, "no Python 3 with pip, which downloads the engine: "+
		"install python3 and python3-pip, or set %s", EnvPython)
}

func (s *setup) tryPython(ctx context.Context, name string) (python, error) {
	path, err := child.Look(s.environ, name)
	if err != nil || !s.usable(ctx, path) {
		return python{}, errors.New("program not found")
	}
	p := python{path: path}
	line, err := s.askVersion(ctx, path, "-m", "pip", "--version")
	if ctx.Err() != nil {
		return p, ctx.Err()
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return p, fmt.Errorf("it does not run: %w", err)
	}
	if err != nil {
		return p, errors.New("it has no pip: install python3-pip, or run '" + name + " -m ensurepip'")
	}
	m := pipVersion.FindStringSubmatch(line)
	if m == nil {
		return p, errors.New("its pip does not print a version: " + line)
	}
	p.pip = m[1]
	major, _ := strconv.Atoi(m[2])
	minor, _ := strconv.Atoi(m[3])
	if major < pipMajor || major == pipMajor && minor < pipMinor {
		return p, errors.New("its pip is " + p.pip + ", too old: run '" + name + " -m pip install --upgrade pip'")
	}
	return p, nil
}

// compiler is a C++ compiler. Whether it supports C++20 is known only once it compiles.
type compiler struct {
	command []string // with an absolute path
	version string   // "g++ 12.2.0"
	old     bool     // older than the oldest version known to work
}

func (c compiler) String() string { return c.version + " (" + strings.Join(c.command, " ") + ")" }

const compilerRemedy = "install g++ 11 or newer or clang 14 or newer, or set " + EnvCXX

// findCompilers returns the candidates, best first. There is at least one if err is nil.
func (s *setup) findCompilers(ctx context.Context) ([]compiler, error) {
	named, from := s.CXX, "the requested compiler"
	if named == "" {
		named, from = s.getenv(EnvCXX), EnvCXX
	}
	names := []string{"c++", "g++", "clang++"}
	if named != "" {
		names = []string{named}
	}
	var found []compiler
	seen := map[string]bool{}
	for _, name := range names {
		c, err := s.tryCompiler(ctx, name)
		if err != nil {
			continue
		}
		real, err := filepath.EvalSymlinks(c.command[0])
		if err != nil {
			real = c.command[0]
		}
		if !seen[real] {
			found = append(found, c)
		}
		seen[real] = true
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(found) > 0 {
		return found, nil
	}
	if named != "" {
		return nil, failf(ErrNoCompiler, "%s, %s, does not run: %s", from, named, compilerRemedy)
	}
	remedy := compilerRemedy
	if s.host.os == "darwin" {
		remedy = "run 'xcode-select --install', or set " + EnvCXX
	}
	return nil, failf(ErrNoCompiler, "no C++20 compiler found: %s", remedy)
}

func (s *setup) tryCompiler(ctx context.Context, name string) (compiler, error) {
	command := strings.Fields(name)
	if len(command) == 0 {
		return compiler{}, exec.ErrNotFound
	}
	path, err := child.Look(s.environ, command[0])
	if err != nil {
		return compiler{}, err
	}
	if !s.usable(ctx, path) {
		return compiler{}, exec.ErrNotFound
	}
	command[0] = path
	line, err := s.askVersion(ctx, path, append(command[1:len(command):len(command)], "--version")...)
	if err != nil {
		return compiler{}, err
	}
	c := compiler{command: command}
	c.version, c.old = parseCompiler(line)
	return c, nil
}

// GCC prints "g++ (Debian 12.2.0-14) 12.2.0": the distribution's text in parentheses and sometimes a date at the end.
var (
	gccVersion   = regexp.MustCompile(`\) (\d+)((?:\.\d+)+)`)
	clangVersion = regexp.MustCompile(`clang version (\d+)((?:\.\d+)*)`)
)

func parseCompiler(line string) (version string, old bool) {
	for _, kind := range []struct {
		name    string
		pattern *regexp.Regexp
		oldest  int
	}{{"clang", clangVersion, 14}, {"g++", gccVersion, 11}} {
		if m := kind.pattern.FindStringSubmatch(line); m != nil {
			major, _ := strconv.Atoi(m[1])
			return kind.name + " " + m[1] + m[2], major < kind.oldest
		}
	}
	return line, false
}
