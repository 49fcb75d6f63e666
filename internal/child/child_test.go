package child

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// role makes the test program a child, which tells where it is.
const role = "INGOT_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(role) == "" {
		os.Exit(m.Run())
	}
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		panic(err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		panic(err)
	}
	os.Stdout.WriteString(strings.Join([]string{dir, os.Getenv("PWD"), info.Mode().Perm().String(), entryNames(entries)},
		"\n"))
}

func entryNames(entries []os.DirEntry) string {
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// callersFolder is where the test stands from now on.
func callersFolder(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	return dir
}

func self(t *testing.T) *Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Command(t.Context(), append(os.Environ(), role+"=1"), program)
}

// A child of each method runs in a folder of its own, which is gone afterwards.
func TestFolder(t *testing.T) {
	callersFolder(t)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	t.Setenv("TMP", temp)
	for name, run := range map[string]func(c *Cmd) ([]byte, error){
		"Output":         (*Cmd).Output,
		"CombinedOutput": (*Cmd).CombinedOutput,
		"Run": func(c *Cmd) ([]byte, error) {
			var out strings.Builder
			c.Stdout = &out
			err := c.Run()
			return []byte(out.String()), err
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := run(self(t))
			said := strings.Split(string(out), "\n")
			if err != nil || len(said) != 4 {
				t.Fatalf("%q, %v", out, err)
			}
			dir, pwd, mode, entries := said[0], said[1], said[2], said[3]
			if want, _ := filepath.EvalSymlinks(temp); filepath.Dir(dir) != want || filepath.Base(pwd) != filepath.Base(dir) {
				t.Errorf("it ran in %s (PWD %s), want a folder in %s", dir, pwd, want)
			}
			if runtime.GOOS != "windows" && mode != "-rwx------" || entries != "" {
				t.Errorf("its folder has mode %s and holds %q", mode, entries)
			}
			if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func TestFolderOfStart(t *testing.T) {
	callersFolder(t)
	c := self(t)
	var out strings.Builder
	c.Stdout = &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	if dir, _, _ := strings.Cut(out.String(), "\n"); dir != Root() {
		t.Errorf("it ran in %q, want %q", dir, Root())
	}
}

// A folder that the caller of this package chose is used as it is, and kept.
func TestFolderGiven(t *testing.T) {
	callersFolder(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := self(t)
	c.Dir = dir
	out, err := c.Output()
	if err != nil || !strings.HasPrefix(string(out), dir+"\n"+dir+"\n") {
		t.Errorf("it ran in %q, %v", out, err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}

func TestNoFolder(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	t.Setenv("TMPDIR", missing)
	t.Setenv("TMP", missing)
	_, err := self(t).Output()
	if err == nil || !strings.Contains(err.Error(), "make a working folder") || !strings.Contains(err.Error(), "TMPDIR") {
		t.Errorf("without a folder for temporary files: %v", err)
	}
}

func TestLook(t *testing.T) {
	dir := callersFolder(t)
	program := "tool"
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	for _, folder := range []string{".", "bin", filepath.Join(dir, "real")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, program), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	list := func(dirs ...string) []string {
		return []string{"PATH=/nowhere", "PATH=" + strings.Join(dirs, string(filepath.ListSeparator))}
	}
	for _, test := range []struct {
		environ []string
		name    string
		want    string // "": not found
	}{
		{list("", ".", "bin", filepath.Join(dir, "real")), program, filepath.Join(dir, "real", program)},
		{list("", ".", "bin"), program, ""},
		{nil, program, ""},
		{nil, "." + string(filepath.Separator) + program, filepath.Join(dir, program)},
		{nil, "bin/" + program, filepath.Join(dir, "bin", program)},
		{nil, filepath.Join(dir, "real", program), filepath.Join(dir, "real", program)},
		{list(dir), "other", ""},
	} {
		got, err := Look(test.environ, test.name)
		if got != test.want || (err != nil) != (test.want == "") {
			t.Errorf("%v %s: %q, %v, want %q", test.environ, test.name, got, err, test.want)
		}
	}
	err := Command(context.Background(), list(".", "bin"), program).Run()
	if !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("a program of the caller's folder: %v", err)
	}
}

func TestEnviron(t *testing.T) {
	dir := callersFolder(t)
	sep := string(filepath.ListSeparator)
	abs := filepath.Join(dir, "lib")
	for _, name := range searched {
		got := Environ([]string{name + "=" + strings.Join([]string{"", "lib", ".", abs, ""}, sep)})
		if want := []string{name + "=" + abs}; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		if got := Environ([]string{name + "=lib" + sep}); len(got) > 0 {
			t.Errorf("%v, want nothing", got)
		}
	}
	for _, name := range named {
		got := Environ([]string{name + "=" + filepath.Join("a", "b")})
		if want := []string{name + "=" + filepath.Join(dir, "a", "b")}; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	got := Environ([]string{"A=b", "=C:=x", "PWD=" + dir, "OLDPWD=/", "CXX=./g++ -pipe", "CXX=g++ -O2",
		"INGOT_PYTHON=python3", "INGOT_HOME=", "LD_PRELOAD=libx.so"})
	want := []string{"A=b", "=C:=x", "CXX=" + filepath.Join(dir, "g++") + " -pipe", "CXX=g++ -O2", "INGOT_PYTHON=python3",
		"INGOT_HOME=", "LD_PRELOAD=libx.so"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
