package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// traps fills a folder with files that Python, a compiler or the loader would execute or load if it searched there. A
// program or module that runs leaves a mark; reading a library or header fails.
func traps(t *testing.T, marks string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, module := range []string{"pip.py", "pip/__init__.py", "pip/__main__.py", "sitecustomize.py", "usercustomize.py",
		"json.py", "runpy.py",
		"encodings/__init__.py", "logging/__init__.py", "zipfile.py", "platform.py"} {
		write(module, fmt.Sprintf("open(%q, 'w').close()\n", filepath.Join(marks, strings.ReplaceAll(module, "/", "-"))))
	}
	for _, program := range []string{"python3", "python", "c++", "g++", "clang++", "cc1plus", "as", "ld", "collect2",
		"getconf", "xcode-select"} {
		write(program, fmt.Sprintf("#!/bin/sh\n: > '%s'\nexit 1\n", filepath.Join(marks, program)))
	}
	for _, header := range []string{"concepts", "cstddef", "stddef.h"} {
		write(header, "#error \"a header of the caller's folder\"\n")
	}
	for _, library := range []string{"libmlx.so", "libstdc++.so", "libc.so", "libc.so.6", "libstdc++.so.6", "libm.so.6",
		"libz.so.1"} {
		write(library, "not a library\n")
	}
	return dir
}

// No file of the user's working directory is run or read, even if environment variables name the current directory.
func TestCallersFolder(t *testing.T) {
	w := newWorld(t)
	marks := t.TempDir()
	dir := traps(t, marks)
	t.Chdir(dir)
	for name, value := range map[string]string{
		"PATH":               ".:" + os.Getenv("PATH") + ":",
		"PYTHONPATH":         ":.",
		"CPATH":              ":.",
		"CPLUS_INCLUDE_PATH": ".:",
		"LIBRARY_PATH":       ":.",
		"COMPILER_PATH":      ".",
		"LD_LIBRARY_PATH":    ":.",
	} {
		w.setenv(name, value)
	}
	check := func(what string) {
		t.Helper()
		left, err := os.ReadDir(marks)
		if err != nil {
			t.Fatal(err)
		}
		for _, mark := range left {
			t.Errorf("%s: %s of the caller's folder ran", what, mark.Name())
			_ = os.Remove(filepath.Join(marks, mark.Name()))
		}
	}
	r := Status(t.Context(), w.opts)
	check("Status")
	if r.Python == nil || r.Compiler == nil || filepath.Dir(r.Python.Path) == dir || filepath.Dir(r.Compiler.Path) == dir {
		t.Errorf("Status found Python %v and compiler %v: %v", r.Python, r.Compiler, r.Problems)
	}
	e, err := Install(t.Context(), w.opts)
	check("Install")
	if err != nil {
		t.Fatal(err)
	}
	if err := loads(t.Context(), e); err != nil {
		t.Error(err)
	}
	w.opts.Python = "" // detected instead of given
	if r := Status(t.Context(), w.opts); r.Python == nil || filepath.Dir(r.Python.Path) == dir {
		t.Errorf("Status found Python %v: %v", r.Python, r.Problems)
	}
	check("Status without INGOT_PYTHON")
}

// A tool that the user specifies by a relative path is used.
func TestRelativeTools(t *testing.T) {
	w := newWorld(t)
	w.unpack()
	cxx := w.cxx("13.1.0", `exec c++ "$@"`)
	t.Chdir(filepath.Dir(cxx))
	w.setenv(EnvCXX, "./program -pipe")
	r := Status(t.Context(), w.opts)
	if r.Compiler == nil || !strings.HasSuffix(r.Compiler.Path, "/program -pipe") || !filepath.IsAbs(r.Compiler.Path) {
		t.Fatalf("the compiler is %v: %v", r.Compiler, r.Problems)
	}
	w.install()
	if n := w.logged("compiling bridge"); n != 1 {
		t.Errorf("compiled %d times", n)
	}
}
