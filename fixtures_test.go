package ingot_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const gen = "testdata/gen/"

// fixtures are the tables of testdata/gen/README.md.
type fixtures struct {
	scripts, modules         []string // paths below gen
	written, owned           []string // patterns of files, relative to the root
	readers, packages, rules []string // cells of the other columns
}

// The tables name every script of testdata/gen and every committed file of test data.
func TestFixtures(t *testing.T) {
	f := readFixtures(t)
	files := testdataFiles(t)
	for _, pattern := range slices.Concat(f.written, f.owned) {
		if !slices.ContainsFunc(files, func(file string) bool { return matches(pattern, file) }) {
			t.Errorf("README.md: no file is %s", pattern)
		}
	}
	for _, file := range files {
		if !slices.ContainsFunc(slices.Concat(f.written, f.owned), func(p string) bool { return matches(p, file) }) {
			t.Errorf("%s: no row of %sREADME.md has it", file, gen)
		}
	}
	named := slices.Concat(f.scripts, f.modules)
	for _, file := range files {
		name, inside := strings.CutPrefix(file, gen)
		if !inside || path.Ext(name) != ".py" {
			continue
		}
		if !slices.Contains(named, name) {
			t.Errorf("%s: no row of %sREADME.md has it", file, gen)
		}
		text, err := os.ReadFile(filepath.FromSlash(file))
		if n := strings.Count(string(text), "\n"); err != nil || n > 400 {
			t.Errorf("%s has %d lines, want at most 400: %v", file, n, err)
		}
	}
	for _, name := range named {
		if !slices.Contains(files, gen+name) {
			t.Errorf("README.md: no script %s", name)
		}
	}
	for _, dir := range f.readers {
		tests, err := filepath.Glob(filepath.Join(filepath.FromSlash(dir), "*_test.go"))
		if err != nil || len(tests) == 0 {
			t.Errorf("README.md: %s has no tests: %v", dir, err)
		}
	}
	pinned, err := os.ReadFile(gen + "requirements.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range f.packages {
		if name != "none" && !strings.Contains("\n"+string(pinned), "\n"+name+"==") {
			t.Errorf("README.md: requirements.txt does not pin %s", name)
		}
	}
	for _, rule := range f.rules {
		if !slices.Contains([]string{"bytes", "numbers", "tensors", "no"}, rule) {
			t.Errorf("README.md: unknown rule %q", rule)
		}
	}
}

// readFixtures reads the tables: six columns for scripts, and below further headings two for modules and for files.
func readFixtures(t *testing.T) fixtures {
	t.Helper()
	text, err := os.ReadFile(gen + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	var f fixtures
	quoted := regexp.MustCompile("`([^`]+)`")
	names := func(cell string) []string {
		var list []string
		for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
			list = append(list, m[1])
		}
		return list
	}
	heading := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if h, ok := strings.CutPrefix(line, "## "); ok {
			heading = h
		}
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		first := names(cells[0])
		switch {
		case !strings.HasPrefix(line, "| `"):
		case heading == "Scripts" && len(cells) == 6:
			script, _, _ := strings.Cut(first[0], " ")
			f.scripts = append(f.scripts, script)
			f.written = append(f.written, names(cells[1])...)
			f.readers = append(f.readers, names(cells[2])...)
			f.packages = append(f.packages, strings.Split(strings.TrimSpace(cells[3]), ", ")...)
			f.rules = append(f.rules, names(cells[4])...)
		case heading == "Modules":
			f.modules = append(f.modules, first...)
		case strings.HasPrefix(heading, "Files"):
			f.owned = append(f.owned, first...)
		}
	}
	if len(f.scripts) < 20 || len(f.modules) < 10 || len(f.owned) < 5 {
		t.Fatalf("README.md: %d scripts, %d modules, %d other files", len(f.scripts), len(f.modules), len(f.owned))
	}
	return f
}

// testdataFiles returns the files of all testdata folders, and the tables that scripts write elsewhere.
func testdataFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("tokenizer/chars/*.bin")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && file != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "__pycache__") {
			return fs.SkipDir
		}
		file = filepath.ToSlash(file)
		// The fuzzer writes what it found into testdata/fuzz.
		if !d.IsDir() && strings.Contains("/"+file, "/testdata/") && !strings.Contains(file, "testdata/fuzz/") {
			files = append(files, file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// matches reports whether the pattern is that of the file, or, with a slash at its end, of a folder above it.
func matches(pattern, file string) bool {
	if strings.HasSuffix(pattern, "/") {
		n := strings.Count(pattern, "/")
		if parts := strings.SplitAfterN(file, "/", n+1); len(parts) == n+1 {
			file = strings.Join(parts[:n], "")
		}
	}
	ok, err := path.Match(pattern, file)
	return ok && err == nil
}
