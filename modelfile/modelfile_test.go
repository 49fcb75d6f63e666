package modelfile

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func mustParse(t *testing.T, text string) *File {
	t.Helper()
	f, err := Parse("Modelfile", []byte(text))
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return f
}

// bare removes the positions, which Format does not keep.
func bare(f *File) []Command {
	out := slices.Clone(f.Commands)
	for i := range out {
		out[i].Line, out[i].Col = 0, 0
	}
	return out
}

func TestParse(t *testing.T) {
	f := mustParse(t, `# a model
FROM ./checkpoint
  # an indented comment
draft	~/draft
Parameter temperature 0.7
PARAMETER stop "<|im end|>"
PARAMETER stop "a "b" c"
SYSTEM """
You are
  # not a comment
"""
  MESSAGE user What is "this" # not a comment
TEMPLATE "{{ .Prompt }}"
REQUIRES 0.19.0
`)
	want := []Command{
		{From, "", "./checkpoint", 2, 1},
		{Draft, "", "~/draft", 4, 1},
		{Parameter, "temperature", "0.7", 5, 1},
		{Parameter, "stop", "<|im end|>", 6, 1},
		{Parameter, "stop", `a "b" c`, 7, 1},
		{System, "", "\nYou are\n  # not a comment\n", 8, 1},
		{Message, "user", `What is "this" # not a comment`, 12, 3},
		{Template, "", "{{ .Prompt }}", 13, 1},
		{Requires, "", "0.19.0", 14, 1},
	}
	if d := cmp.Diff(want, f.Commands); d != "" {
		t.Error(d)
	}
}

func TestValues(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain text  ", "plain text"},
		{"\t tabs\t", "tabs"},
		{`""`, ""},
		{`''`, "''"},
		{`""""""`, ""},
		{`"'"`, "'"},
		{`'"'`, `'"'`},
		{`" kept "`, " kept "},
		{`"say "hi" now"`, `say "hi" now`},
		{`'it's'`, "'it's'"},
		{`'a' and 'b'`, `'a' and 'b'`},
		{`'Tis the season`, `'Tis the season`},
		{`'Hello' she said`, `'Hello' she said`},
		{`'`, `'`},
		{`"'quoted'"`, `'quoted'`},
		{`"""'a' "b""""`, `'a' "b"`},
		{`"trailing blanks"  `, "trailing blanks"},
		{"\"over\nlines\"", "over\nlines"},
		{"\"\nlines\n\"", "\nlines\n"},
		{`"""one line"""`, "one line"},
		{`"""ends in "quotes""""`, `ends in "quotes"`},
		{`"""''"'""'""'"'''''""'""'"""`, `''"'""'""'"'''''""'""'`},
		{"\"\"\"a\nFROM b\n\"\"\"", "a\nFROM b\n"},
		{"\"\"\"a \"\"\" b\nc\"\"\" ", "a \"\"\" b\nc"},
		{"\"from lower\nfrom case\"", "from lower\nfrom case"},
		{"no-break\u00a0space\u00a0", "no-break\u00a0space\u00a0"},
	} {
		f := mustParse(t, "FROM x\nSYSTEM "+c.in+"\nPARAMETER seed 1\n")
		if got := f.All(System)[0].Value; got != c.want || len(f.Commands) != 3 {
			t.Errorf("%q: got %q and %d commands, want %q and 3", c.in, got, len(f.Commands), c.want)
		}
	}
}

// Lines may end in CR alone, as in files of old editors.
func TestLineEnds(t *testing.T) {
	for _, end := range []string{"\n", "\r\n", "\r", "\r\r\n"} {
		text := "a\nb"
		if end == "\r" { // a quoted text keeps it
			text = "a\rb"
		}
		f := mustParse(t, strings.ReplaceAll("FROM x\nSYSTEM \"\"\"a\nb\"\"\"\nPARAMETER stop 'x'\n", "\n", end))
		if len(f.Commands) != 3 || f.Commands[1].Value != text || f.Commands[2].Value != "'x'" {
			t.Errorf("%q: %+v", end, f.Commands)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", `Modelfile: no FROM line: it names the source of the model`},
		{"# only a comment\n", `Modelfile: no FROM line`},
		{"FORM x\n", `Modelfile:1:1: unknown command (known: FROM, LICENSE, TEMPLATE, SYSTEM, ADAPTER, DRAFT, ` +
			`RENDERER, PARSER, PARAMETER, MESSAGE, REQUIRES): "FORM"`},
		{"FROM x\n\n  BLAH y", `Modelfile:3:3: unknown command`},
		{"FROM", `Modelfile:1:1: FROM needs a value: "FROM"`},
		{"FROM  \t", `Modelfile:1:1: FROM needs a value: "FROM"`},
		{`FROM ""`, `Modelfile:1:6: FROM needs a value of one line: "\"\""`},
		{"FROM \"a\nb\"", `Modelfile:1:6: FROM needs a value of one line: "a\nb"`},
		{"FROM x\nPARAMETER", `Modelfile:2:1: PARAMETER needs a parameter name and a value: "PARAMETER"`},
		{"FROM x\nPARAMETER seed", `Modelfile:2:1: PARAMETER needs a value: "PARAMETER seed"`},
		{"FROM x\nPARAMETER temprature 1",
			`Modelfile:2:11: unknown parameter (known: draft_num_predict, frequency_penalty, `},
		{"FROM x\nPARAMETER temperature hot", `Modelfile:2:23: parameter temperature must be a number: "hot"`},
		{"FROM x\nPARAMETER temperature -1", `Modelfile:2:23: parameter temperature must be between 0 and 100: "-1"`},
		{"FROM x\nPARAMETER temperature NaN", `Modelfile:2:23: parameter temperature must be a number: "NaN"`},
		{"FROM x\nPARAMETER top_p 1.5", `Modelfile:2:17: parameter top_p must be between 0 and 1: "1.5"`},
		{"FROM x\nPARAMETER top_k 4.5", `Modelfile:2:17: parameter top_k must be an integer: "4.5"`},
		{"FROM x\nPARAMETER seed 99999999999999999999", `Modelfile:2:16: parameter seed must be an integer`},
		{"FROM x\nPARAMETER stop \"\"", `Modelfile:2:16: parameter stop must not be empty: "\"\""`},
		{"FROM x\nPARAMETER use_mmap maybe", `Modelfile:2:20: parameter use_mmap must be either true or false: "maybe"`},
		{"FROM x\nPARAMETER temperature 0.7 # warm", `Modelfile:2:23: parameter temperature must be a number: "0.7 # warm"`},
		{"FROM x\nMESSAGE robot hi", `Modelfile:2:9: unknown role (known: system, user, assistant): "robot"`},
		{"FROM x\nMESSAGE", `Modelfile:2:1: MESSAGE needs a role (system, user, assistant) and a value: "MESSAGE"`},
		{"FROM x\nMESSAGE user", `Modelfile:2:1: MESSAGE needs a value: "MESSAGE user"`},
		{"FROM x\nREQUIRES soon", `Modelfile:2:10: REQUIRES needs a version such as 0.19.0: "soon"`},
		{"FROM x\nSYSTEM \"open", `Modelfile:2:8: the quote " is not closed; the closing quote must end a line: "\"open"`},
		{"FROM x\nSYSTEM \"\"\"open\"\"\" tail\n",
			`Modelfile:2:8: the quote """ is not closed; the closing quote must end a line: "\"\"\"open\"\"\" tail"`},
		{"FROM x\nSYSTEM \"open\nPARAMETER stop \"x\"\n", `Modelfile:2:8: the quote " is not closed`},
		{"FROM x\nPARAMETER stop \"\n", `Modelfile:2:16: the quote " is not closed`},
		{"FROM x\nSYSTEM ä \xff", `Modelfile:2:10: not UTF-8: "\xff"`},
		{"FROM x\nä\x00", `Modelfile:2:2: a NUL character`},
		{"\xff\xfeF", `Modelfile: not UTF-16: it has an odd number of bytes`},
		{"\xff\xfeF\x00\x00\xd8", `Modelfile: not UTF-16: unpaired surrogate`},
		{"\xfe\xff\x00F\xdc\x00", `Modelfile: not UTF-16: unpaired surrogate`},
		{strings.Repeat("#", MaxSize+1), `Modelfile: not a Modelfile: larger than 64 MiB`},
		{"FROM x\n" + strings.Repeat("ä", 100) + " y", `Modelfile:2:1: unknown command`},
	} {
		_, err := Parse("Modelfile", []byte(c.in))
		if !errors.Is(err, ErrModelfile) || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q:\n got %v\nwant %s", c.in, err, c.want)
		}
	}
}

func TestEncodings(t *testing.T) {
	const text = "FROM x\nSYSTEM \"\"\"grüße\n😀\"\"\"\n"
	units := utf16.Encode([]rune("\ufeff" + text))
	var little, big []byte
	for _, u := range units {
		little = append(little, byte(u), byte(u>>8))
		big = append(big, byte(u>>8), byte(u))
	}
	want := mustParse(t, text)
	for name, in := range map[string]string{
		"BOM":                  "\ufeff" + text,
		"CRLF":                 strings.ReplaceAll(text, "\n", "\r\n"),
		"UTF-16 little endian": string(little),
		"UTF-16 big endian":    string(big),
		"no newline at end":    strings.TrimSuffix(text, "\n"),
	} {
		if d := cmp.Diff(want, mustParse(t, in)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestParams(t *testing.T) {
	f := mustParse(t, "FROM x\nPARAMETER temperature 1\nPARAMETER temperature 0.5\nPARAMETER seed -3\n"+
		"PARAMETER stop a\nPARAMETER stop b\nPARAMETER mirostat 1\nPARAMETER use_mmap true")
	got, warnings, err := f.Params()
	want := map[string]any{"temperature": 0.5, "seed": int64(-3), "stop": []string{"a", "b"}, "use_mmap": true}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Error(err, d)
	}
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "Modelfile:7:1: the parameter is deprecated") {
		t.Errorf("warnings %q", warnings)
	}
}

func TestFormat(t *testing.T) {
	f := &File{Commands: []Command{
		{Name: From, Value: "./x y"},
		{Name: Parameter, Key: "stop", Value: `"`},
		{Name: Parameter, Key: "stop", Value: " "},
		{Name: System, Value: ""},
		{Name: System, Value: "a\nb\n"},
		{Name: System, Value: "'tis"},
		{Name: Message, Key: "user", Value: "hi"},
	}}
	want := `FROM ./x y
PARAMETER stop """""""
PARAMETER stop " "
SYSTEM ""
SYSTEM """a
b
"""
SYSTEM 'tis
MESSAGE user hi
`
	got, err := f.Format()
	if err != nil || got != want {
		t.Errorf("got %v\n%s", err, cmp.Diff(want, got))
	}
	if d := cmp.Diff(f.Commands, bare(mustParse(t, got))); d != "" {
		t.Error(d)
	}
	for _, v := range []string{"a\"\"\"\nb", "a\r\nb", "\x00", "\xff"} {
		if _, err := (&File{Commands: []Command{{Name: System, Value: v}}}).Format(); err == nil {
			t.Errorf("%q: no error, want one: no quoting can express it", v)
		}
	}
}

func TestResolve(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	dir, abs := filepath.Join("some", "dir"), filepath.Join(home, "abs")
	for _, c := range []struct{ in, want string }{
		{".", dir},
		{"./x", filepath.Join(dir, "x")},
		{"../x", filepath.Join("some", "x")},
		{"x/y", filepath.Join(dir, "x", "y")},
		{"~", home},
		{"~/x", filepath.Join(home, "x")},
		{"~x", filepath.Join(dir, "~x")},
		{abs, abs},
	} {
		if got, err := Resolve(dir, c.in); err != nil || got != c.want {
			t.Errorf("%q: got %q, %v, want %q", c.in, got, err, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"FROM x\nPARAMETER stop \"a\"\nSYSTEM \"\"\"b\nc\"\"\"\nMESSAGE user 'd'\n", "FROM x\r\nSYSTEM \"a\r\r\nb'\n\"\n",
		"FROM x\nSYSTEM '\"\"\"\na\"\"\"\n\"'\n", "\xff\xfeF\x00R\x00O\x00M\x00 \x00x\x00", "FROM x\nSYSTEM \"\"\"\"\"\"\"\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := Parse("Modelfile", data)
		if err != nil {
			if strings.Contains(err.Error(), "\n") || len(err.Error()) > 1000 {
				t.Errorf("error is not one short line: %q", err)
			}
			return
		}
		text, err := x.Format()
		if err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		y, err := Parse("Modelfile", []byte(text))
		if err != nil {
			t.Fatalf("%q became %q: %v", data, text, err)
		}
		if d := cmp.Diff(bare(x), bare(y), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%q became %q: %s", data, text, d)
		}
		if _, _, err := x.Params(); err != nil {
			t.Error(err)
		}
	})
}

// TestErrorPlaces checks errors about commands that a program made, which have no position.
func TestErrorPlaces(t *testing.T) {
	c := Command{Name: From, Value: "x"}
	for _, e := range []struct {
		file, want string
		line       int
	}{
		{"", `no such folder: "FROM x"`, 0},
		{"a/Modelfile", `a/Modelfile: no such folder: "FROM x"`, 0},
		{"a/Modelfile", `a/Modelfile:3:1: no such folder: "FROM x"`, 3},
		{"", `line 3:1: no such folder: "FROM x"`, 3},
	} {
		c.Line, c.Col = e.line, 1
		if got := (&File{Name: e.file}).Errorf(c, "no such %s", "folder").Error(); got != e.want {
			t.Errorf("got %s, want %s", got, e.want)
		}
	}
}

// A line of any length is read in a time that grows with it: this one would take hours otherwise.
func TestParseLongLine(t *testing.T) {
	text := strings.Repeat("ä", 2<<20)
	f, err := Parse("Modelfile", []byte("FROM x\nSYSTEM "+text))
	if err != nil || f.Commands[1].Value != text {
		t.Error(err)
	}
}
