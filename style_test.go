package ingot_test

import (
	"bufio"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// The rules of docs/style.md that a machine can hold. A tab counts as one column.
const (
	maxCodeColumns = 120
	maxDocsColumns = 100
)

// longLines are the lines that may be longer: at most 20.
var longLines []struct{ file, begins string }

// retired are identifiers that docs/style.md replaces, in the folder where they had that meaning.
var retired = []struct{ in, name, use string }{
	{"runtime/", "hears", "neededHiddenStates"},
	{"runtime/", "luck", "acceptanceStats"},
	{"runtime/", "wish", "draftRequest"},
	{"runtime/", "outlook", "draftState"},
	{"runtime/", "verdict", "sampleResult"},
	{"runtime/", "stepped", "batchItem"},
	{"runtime/", "pace", "prefillRate"},
	{"runtime/", "chance", "uniform"},
	{"runtime/", "heat", "inverseTemperature"},
	{"runtime/", "squeeze", "preempt"},
	{"runtime/", "shares", "batchSizeSum"},
	{"mlx/", "few", "smallBatch"},
	{"mlx/", "turn", "transpose"},
}

// retiredPhrases appear in no text, code or help.
var retiredPhrases = []string{
	"What is not said to be otherwise",
	"products of sums",
	"what products of sums have too much",
	"fits no tensor",
	"it is from 0 to",
	"name that requests may call the server by",
	"by how its path begins",
	"The first that fits counts",
	"Tokens said",
	"tokens said",
	"Longest answer",
	"past prompts",
	"past ones",
}

// gitFiles lists files with the command git ls-files.
func gitFiles(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"ls-files"}, args...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

// styled lists the files with an ending that git does not ignore, new ones included, without generated files and test
// data.
func styled(t *testing.T, endings ...string) []string {
	t.Helper()
	return slices.DeleteFunc(gitFiles(t, "--cached", "--others", "--exclude-standard"), func(file string) bool {
		return !slices.Contains(endings, path.Ext(file)) || isGenerated(file) || strings.Contains(file, "testdata/")
	})
}

func eachLine(t *testing.T, file string, fn func(number int, line string)) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for n := 1; s.Scan(); n++ {
		fn(n, s.Text())
	}
	if err := s.Err(); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func TestLineLength(t *testing.T) {
	if len(longLines) > 20 {
		t.Errorf("%d lines may be long, want at most 20", len(longLines))
	}
	for _, file := range styled(t, ".go", ".cc", ".h") {
		eachLine(t, file, func(n int, line string) {
			columns := utf8.RuneCountInString(line)
			allowed := slices.ContainsFunc(longLines, func(l struct{ file, begins string }) bool {
				return l.file == file && strings.HasPrefix(strings.TrimSpace(line), l.begins)
			})
			if columns > maxCodeColumns && !allowed {
				t.Errorf("%s:%d has %d columns, want at most %d", file, n, columns, maxCodeColumns)
			}
		})
	}
	for _, file := range styled(t, ".md") {
		code := false
		eachLine(t, file, func(n int, line string) {
			if strings.HasPrefix(line, "```") {
				code = !code
			}
			exempt := code || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "    ") || strings.Contains(line, "](")
			if utf8.RuneCountInString(line) > maxDocsColumns && !exempt {
				t.Errorf("%s:%d has %d columns, want at most %d", file, n, utf8.RuneCountInString(line), maxDocsColumns)
			}
		})
	}
}

var cppWord = regexp.MustCompile(`[A-Za-z_]\w*`)

// identifiers lists the identifiers of a Go file; of C++ all words outside of comments at the end of lines.
func identifiers(t *testing.T, file string) map[string]int {
	t.Helper()
	found := map[string]int{}
	if path.Ext(file) != ".go" {
		eachLine(t, file, func(n int, line string) {
			code, _, _ := strings.Cut(line, "//")
			for _, word := range cppWord.FindAllString(code, -1) {
				found[word] = n
			}
		})
		return found
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	var s scanner.Scanner
	s.Init(set.AddFile(file, -1, len(b)), b, nil, 0)
	for {
		pos, tok, name := s.Scan()
		if tok == token.EOF {
			return found
		}
		if tok == token.IDENT {
			found[name] = set.Position(pos).Line
		}
	}
}

func TestRetiredWords(t *testing.T) {
	for _, file := range styled(t, ".go", ".cc", ".h") {
		names := identifiers(t, file)
		for _, r := range retired {
			if line := names[r.name]; line > 0 && strings.HasPrefix(file, r.in) {
				t.Errorf("%s:%d: the identifier %s is retired: use %s", file, line, r.name, r.use)
			}
		}
	}
	for _, file := range styled(t, ".go", ".cc", ".h", ".md", ".html", ".js") {
		if file == "style_test.go" || file == "docs/style.md" {
			continue
		}
		eachLine(t, file, func(n int, line string) {
			for _, phrase := range retiredPhrases {
				if strings.Contains(line, phrase) {
					t.Errorf("%s:%d: %q is retired: see docs/style.md", file, n, phrase)
				}
			}
		})
	}
}
