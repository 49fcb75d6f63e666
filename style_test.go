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

// retired are the words that the glossary replaces, and the folders where they had that meaning; none: everywhere.
type retired struct {
	words   map[string][]string // of identifiers and file names
	phrases []string            // of any text
}

var (
	retiredWords  = regexp.MustCompile("`([a-z]+)`(?: in ([a-z/, ]+))?")
	retiredPhrase = regexp.MustCompile(`"([^"]+)"`)
)

// readGlossary reads the words of docs/style.md: code in the last column of the glossary, and quotations.
func readGlossary(text string) retired {
	r := retired{words: map[string][]string{}}
	_, glossary, _ := strings.Cut(text, "## Glossary\n")
	for line := range strings.Lines(glossary) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 {
			continue
		}
		for _, m := range retiredWords.FindAllStringSubmatch(cells[4], -1) {
			r.words[m[1]] = strings.FieldsFunc(m[2], func(c rune) bool { return c == ',' || c == ' ' })
		}
	}
	for _, m := range retiredPhrase.FindAllStringSubmatch(strings.ReplaceAll(glossary, "\n", " "), -1) {
		r.phrases = append(r.phrases, m[1])
	}
	return r
}

// word returns the retired word in a name of a file, or "". Each part of a name counts, and its plural.
func (r retired) word(file, name string) string {
	if strings.HasPrefix(file, "server/") && strings.HasSuffix(name, "JSON") {
		return ""
	}
	for _, part := range parts(name) {
		for _, w := range []string{part, strings.TrimSuffix(part, "s")} {
			in, ok := r.words[w]
			if ok && (len(in) == 0 || slices.ContainsFunc(in, func(f string) bool { return strings.HasPrefix(file, f+"/") })) {
				return w
			}
		}
	}
	return ""
}

// parts returns the words of a name, in lower case: "HTTPTurns_of" has http, turns and of.
func parts(name string) []string {
	var list []string
	begin := 0
	for i := range len(name) + 1 {
		isEnd := i == len(name) || !isLetter(name[i]) || i > begin && isUpper(name[i]) &&
			(!isUpper(name[i-1]) || i+1 < len(name) && isLetter(name[i+1]) && !isUpper(name[i+1]))
		if !isEnd {
			continue
		}
		if i > begin {
			list = append(list, strings.ToLower(name[begin:i]))
		}
		if begin = i; i < len(name) && !isLetter(name[i]) {
			begin++
		}
	}
	return list
}

func isUpper(c byte) bool  { return 'A' <= c && c <= 'Z' }
func isLetter(c byte) bool { return isUpper(c) || 'a' <= c && c <= 'z' }

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

var cppWord, cppString = regexp.MustCompile(`[A-Za-z_]\w*`), regexp.MustCompile(`"[^"]*"`)

// identifiers lists the identifiers of a Go file; of C++ all words outside of strings and of comments at the end of
// lines.
func identifiers(t *testing.T, file string) map[string]int {
	t.Helper()
	found := map[string]int{}
	if path.Ext(file) != ".go" {
		eachLine(t, file, func(n int, line string) {
			code, _, _ := strings.Cut(cppString.ReplaceAllString(line, ""), "//")
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
	b, err := os.ReadFile("docs/style.md")
	if err != nil {
		t.Fatal(err)
	}
	r := readGlossary(string(b))
	if len(r.words) < 20 || len(r.phrases) < 10 {
		t.Errorf("the glossary retires %d words and %d phrases", len(r.words), len(r.phrases))
	}
	for _, file := range styled(t, ".go", ".cc", ".h") {
		for name, line := range identifiers(t, file) {
			if w := r.word(file, name); w != "" {
				t.Errorf("%s:%d: %s: the glossary of docs/style.md retires %q", file, line, name, w)
			}
		}
	}
	for _, file := range tracked(t) {
		if w := r.word(file, path.Base(file)); w != "" && !strings.Contains(file, "testdata/") {
			t.Errorf("%s: the glossary of docs/style.md retires %q", file, w)
		}
	}
	for _, file := range styled(t, ".go", ".cc", ".h", ".md", ".html", ".js") {
		if file == "style_test.go" || file == "docs/style.md" {
			continue
		}
		eachLine(t, file, func(n int, line string) {
			for _, phrase := range r.phrases {
				if strings.Contains(line, phrase) {
					t.Errorf("%s:%d: %q is retired: see docs/style.md", file, n, phrase)
				}
			}
		})
	}
}

// The glossary is read as its introduction says.
func TestReadGlossary(t *testing.T) {
	r := readGlossary("`no`\n## Glossary\n| Term | Meaning | Where | Not |\n|---|---|---|---|\n" +
		"| backoff | `delay` | all | `patience` |\n| row | of a | step | `turn` in mlx, arch/types; part, \"rows said\" |\n")
	for name, want := range map[string]string{
		"mlx/a.go maxPatience": "patience", "a.go Patiences": "patience", "a.go impatience": "", "mlx/a.go turnOf": "turn",
		"arch/types/a.go HTTPTurns": "turn", "arch/a.go turn": "", "a.go part": "", "a.go delay": "", "a.go no": "",
		"server/a.go patienceJSON": "",
	} {
		if file, name, _ := strings.Cut(name, " "); r.word(file, name) != want {
			t.Errorf("%s in %s: %q, want %q", name, file, r.word(file, name), want)
		}
	}
	if !slices.Equal(r.phrases, []string{"rows said"}) {
		t.Errorf("phrases %q", r.phrases)
	}
}
