package ingot_test

import (
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// The sizes of files and packages, which docs/style.md gives.
const (
	maxFileLines    = 400
	maxPackageFiles = 25   // without tests and generated files
	maxPackageLines = 4000 // of these files
)

// grows are the packages that grow with models. They may have any size.
var grows = []string{"arch/types"}

func isCode(file string) bool {
	return slices.Contains([]string{".go", ".cc", ".h", ".py", ".sh"}, path.Ext(file))
}

func isGenerated(file string) bool {
	name := strings.TrimSuffix(file, path.Ext(file))
	return strings.HasSuffix(name, "_gen") || strings.HasSuffix(name, "_gen_test")
}

// tracked lists the files of the repository, including new ones that are not ignored.
func tracked(t *testing.T) []string {
	t.Helper()
	files := gitFiles(t, "--cached", "--others", "--exclude-standard")
	return slices.DeleteFunc(files, func(file string) bool {
		_, err := os.Stat(file) // a deleted file is listed until the next commit
		return err != nil
	})
}

func lines(t *testing.T, file string) (n int) {
	eachLine(t, file, func(int, string) { n++ })
	return n
}

// Files written by hand have at most 400 lines, tests and scripts included.
func TestFileSizes(t *testing.T) {
	for _, file := range tracked(t) {
		if !isCode(file) || isGenerated(file) {
			continue
		}
		if n := lines(t, file); n > maxFileLines {
			t.Errorf("%s has %d lines, want at most %d: split it by subject", file, n, maxFileLines)
		}
	}
}

// Packages, and folders of C++, have few files and lines, so that each is read in one sitting. Those that are
// nearly full are reported with -v: a subject leaves better before the cap shapes the code.
func TestPackageSizes(t *testing.T) {
	type size struct{ files, lines int }
	sizes := map[string]size{}
	for _, file := range tracked(t) {
		test := strings.HasSuffix(file, "_test.go") || strings.Contains(file, "testdata/")
		if !slices.Contains([]string{".go", ".cc", ".h"}, path.Ext(file)) || isGenerated(file) || test {
			continue
		}
		s := sizes[path.Dir(file)]
		sizes[path.Dir(file)] = size{s.files + 1, s.lines + lines(t, file)}
	}
	for _, dir := range slices.Sorted(maps.Keys(sizes)) {
		s := sizes[dir]
		if slices.Contains(grows, dir) {
			continue
		}
		if s.files > maxPackageFiles {
			t.Errorf("%s has %d files, want at most %d: move one job to a package beneath it", dir, s.files, maxPackageFiles)
		}
		if s.lines > maxPackageLines {
			t.Errorf("%s has %d lines, want at most %d: move one job to a package beneath it", dir, s.lines, maxPackageLines)
		}
		if 10*s.files > 9*maxPackageFiles || 10*s.lines > 9*maxPackageLines {
			t.Logf("%s is nearly full: %d files and %d lines; look for a subject that can leave", dir, s.files, s.lines)
		}
	}
}
