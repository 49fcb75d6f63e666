package terminal

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/ingotml/ingot/internal/limits"
)

func TestClean(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"colour", "\x1b[31mred\x1b[0m", `\u001b[31mred\u001b[0m`},
		{"clear the screen", "a\x1b[2J\x1b[Hb", `a\u001b[2J\u001b[Hb`},
		{"window title", "\x1b]0;title\x07", `\u001b]0;title\u0007`},
		{"hyperlink", "\x1b]8;;http://x\x1b\\y\x1b]8;;\x1b\\", `\u001b]8;;http://x\u001b\y\u001b]8;;\u001b\`},
		{"clipboard", "\x1b]52;c;cm0gLXJm\x07", `\u001b]52;c;cm0gLXJm\u0007`},
		{"device control string", "\x1bP$q\x1b\\", `\u001bP$q\u001b\`},
		{"C1", "a\u009b31mb\u009d0;x\u009c\u0085", `a\u009b31mb\u009d0;x\u009c\u0085`},
		{"C1 as bytes", "a\x9b31mb\x90", "a\ufffd31mb\ufffd"},
		{"invalid", "a\xff\xc3(\xe2\x82", "a\ufffd\ufffd(\ufffd\ufffd"},
		{"overlong escape character", "\xc0\x9b[2J", "\ufffd\ufffd[2J"},
		{"surrogates", "\xed\xa0\x80", "\ufffd\ufffd\ufffd"},
		{"overwritten line", "harmless\rother\bx\x00\x7f", `harmless\u000dother\u0008x\u0000\u007f`},
		{"lines", "a\r\nb\n\tc\r", "a\nb\n\tc" + `\u000d`},
		{"form feed", "a\fb\v", `a\u000cb\u000b`},
		{"direction", "a\u202eb\u2066c\u2069\u200e\u200f\u061c", `a\u202eb\u2066c\u2069\u200e\u200f\u061c`},
		{"separators", "a\u2028b\u2029", `a\u2028b\u2029`},
		{"tags", "a\U000e0041\U000e007f", `a\udb40\udc41\udb40\udc7f`},
	} {
		if got := Clean(test.text); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
	for _, text := range []string{
		"", "plain text\n\twith lines\n", `a \u001b in letters`,
		"\u00a0\u00ad\u00ff caf\u00e9",
		// Hebrew, Arabic with its number sign
		"\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627 \u0600\u06f1",
		// Thai, Khmer with its breaks
		"\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 \u1797\u17b6\u179f\u17b6\u200b\u1781\u17d2\u1798\u17c2\u179a",
		// joiners of Devanagari and Persian
		"\u0915\u094d\u200d\u0937 \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
		"\u65e5\u672c\u8a9e\U000e0100",
		"\U0001f468\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f \U0001f1e9\U0001f1ea \U0001f44d\U0001f3fd", "e\u0301",
		"\ufffd\ufeff", "\U0001faf8\U0010ffff\ue000",
	} {
		if got := Clean(text); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

// TestNotPlain compares the table with Unicode's: control characters, direction controls and tags are not plain, and
// letters, marks and symbols are.
func TestNotPlain(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		control := unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control) || r >= 0xe0000 && r < 0xe0080
		if r == '\n' || r == '\t' {
			control = false
		}
		switch {
		case control && Plain(r):
			t.Errorf("%U is plain", r)
		case unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Zs,
			unicode.Prepended_Concatenation_Mark, unicode.Join_Control) && !Plain(r):
			t.Errorf("%U is not plain", r)
		}
	}
}

func TestLine(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"one", "one"},
		{"GET x: 500\ningot: all is well\r\n", "GET x: 500 ingot: all is well"},
		{"a\rb\tc\vd\fe\u0085f\u2028g\u2029h", "a b c d e f g h"},
		{"  indented\x1b[1A", `  indented\u001b[1A`},
	} {
		if got := Line(test.text); got != test.want || Line(got) != got {
			t.Errorf("%q: %q, want %q", test.text, got, test.want)
		}
	}
}

// TestCleanJSON checks that cleaned JSON has the same value.
func TestCleanJSON(t *testing.T) {
	const text = "a\x1b[2J\x7f\u009b\u202e\u2028\U000e0041\U0001f600\n"
	b, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	var back string
	clean := Clean(string(b))
	if err := json.Unmarshal([]byte(clean), &back); err != nil || back != text {
		t.Errorf("%q, %v; want %q", back, err, text)
	}
	for _, r := range clean {
		if !Plain(r) {
			t.Errorf("%q has %U", clean, r)
		}
	}
}

func TestOutput(t *testing.T) {
	const text = "a\x1b[2Jb\xffc\n"
	var data, notes bytes.Buffer
	for _, o := range []*Output{Data(&data), Notes(&notes)} {
		if n, err := io.WriteString(o, text); n != len(text) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if columns, rows := o.Size(); o.IsTerminal() || o.File() != nil || columns+rows > 0 {
			t.Error("a buffer is a terminal")
		}
	}
	if data.String() != text {
		t.Errorf("a file gets %q", &data)
	}
	if want := "a" + `\u001b` + "[2Jb\ufffdc\n"; notes.String() != want {
		t.Errorf("notes are %q, want %q", &notes, want)
	}
	// Drawing comes after the text written before, and never completes a character of it.
	var b bytes.Buffer
	o := Notes(&b)
	io.WriteString(o, "x\xe2\x82")
	io.WriteString(o.Drawing(), "\x1b[2m")
	io.WriteString(o, "\xacy\xc3")
	if err := o.Flush(); err != nil {
		t.Fatal(err)
	}
	if want := "x\ufffd\ufffd\x1b[2m\ufffdy\ufffd"; b.String() != want {
		t.Errorf("drawn %q, want %q", &b, want)
	}
	if err := Notes(broken{}).Flush(); err != nil {
		t.Errorf("an empty flush: %v", err)
	}
	if n, err := Notes(broken{}).Write([]byte("x")); n != 0 || err == nil {
		t.Errorf("%d, %v", n, err)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestPlainIsFree checks that clean text is written without an allocation.
func TestPlainIsFree(t *testing.T) {
	o := Notes(io.Discard)
	text := []byte(strings.Repeat("plain text, caf\u00e9 \u65e5\u672c\n", 100))
	if n := testing.AllocsPerRun(100, func() { o.Write(text) }); n > 0 {
		t.Errorf("%g allocations", n)
	}
}

// TestHistoryIsShown checks that control sequences in the history are displayed, not interpreted.
func TestHistoryIsShown(t *testing.T) {
	h := &History{}
	if err := h.Add("a\x1b[2J\x1b]0;t\x07\u202eb"); err != nil {
		t.Fatal(err)
	}
	e, screen := newEditor(t, "\x1b[A\r", true, 60, 10) // the screen fails the test on foreign sequences
	e.History = h
	got, err := e.Read(t.Context(), "> ", ". ")
	if want := "> a" + `\u001b[2J\u001b]0;t\u0007\u202eb` + "\n"; err != nil || got != "a\x1b[2J\x1b]0;t\x07\u202eb" ||
		screen.Text() != want {
		t.Errorf("%q, %v; the screen has %q, want %q", got, err, screen.Text(), want)
	}
}

// FuzzClean checks that the output does not depend on how the text is split into writes, contains no control sequences,
// and does not change when cleaned again.
func FuzzClean(f *testing.F) {
	for _, s := range []string{"plain\n", "\x1b[31mred\x9b\u009b", "a\r\nb\r", "\xe2\x82\xac\xe2\x82",
		"\u202e\U000e0041\u2028", "\x1b]52;c;x\x07", "\xf0\x9f\x98\x80\xf0\x9f"} {
		f.Add([]byte(s), 1)
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, text []byte, at int) {
		at = max(1, min(at, len(text)))
		var split bytes.Buffer
		o := Notes(&split)
		for rest := text; len(rest) > 0; rest = rest[min(at, len(rest)):] {
			o.Write(rest[:min(at, len(rest))])
		}
		o.Flush()
		whole := Clean(string(text))
		if split.String() != whole {
			t.Fatalf("%q in pieces of %d: %q, in one %q", text, at, &split, whole)
		}
		if !utf8.ValidString(whole) {
			t.Fatalf("%q: %q is not UTF-8", text, whole)
		}
		if i := strings.IndexFunc(whole, func(r rune) bool { return !Plain(r) }); i >= 0 {
			t.Fatalf("%q: %q is not clean at %d", text, whole, i)
		}
		if again := Clean(whole); again != whole {
			t.Fatalf("%q: cleaned again: %q", whole, again)
		}
		if line := Line(string(text)); strings.ContainsAny(line, "\n\t") || Clean(line) != line || Line(line) != line {
			t.Fatalf("%q: the line is %q", text, line)
		}
		var wrapped bytes.Buffer
		w := &Wrapper{To: &wrapped, Columns: func() int { return 20 }}
		w.Write(text)
		if b := drawnByWrapper.ReplaceAll(wrapped.Bytes(), nil); plainPrefix(b) != len(b) {
			t.Fatalf("%q: wrapped: %q", text, b)
		}
	})
}

// drawnByWrapper matches the sequence that moves a word to the next line.
var drawnByWrapper = regexp.MustCompile(`\x1b\[\d+D\x1b\[K\n`)

func BenchmarkClean(b *testing.B) {
	for _, c := range []struct{ name, text string }{{"ascii", strings.Repeat("plain text ", 400)},
		{"japanese", strings.Repeat("\u65e5\u672c\u8a9e", 500)}} {
		b.Run(c.name, func(b *testing.B) {
			o := Notes(io.Discard)
			text := []byte(c.text)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				o.Write(text)
			}
		})
	}
}

// TestLongLine checks that a line has a bounded length and keeps its end.
func TestLongLine(t *testing.T) {
	got := Line("open " + strings.Repeat("x\x1b\n", 1<<20) + ": no such file")
	if len(got) > 7*limits.Message || !strings.HasPrefix(got, "open x") || !strings.HasSuffix(got, "no such file") {
		t.Errorf("%d bytes: %.40q", len(got), got)
	}
}
