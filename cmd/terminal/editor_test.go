package terminal

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ingotml/ingot/cmd/terminal/terminaltest"
)

// typed is input that arrives one key at a time, or all at once.
type typed struct {
	keys string
	slow bool
}

func (k *typed) Read(p []byte) (int, error) {
	if k.keys == "" {
		return 0, io.EOF
	}
	n := len(k.keys)
	if k.slow {
		n = 1
	}
	n = copy(p, k.keys[:n])
	k.keys = k.keys[n:]
	return n, nil
}

func newEditor(t *testing.T, keys string, slow bool, columns, rows int) (*Editor, *terminaltest.Screen) {
	screen := terminaltest.NewRaw(t, columns, rows)
	return &Editor{In: &typed{keys, slow}, Out: screen, Size: screen.Size}, screen
}

func TestKeys(t *testing.T) {
	for _, test := range []struct{ keys, want string }{
		{"hello", "hello"},
		{"hllo\x1b[D\x1b[D\x1b[De", "hello"},
		{"ello\x1b[Hh", "hello"},
		{"ello\x01h\x05!", "hello!"},
		{"ello\x1b[1~h\x1b[4~!", "hello!"},
		{"ello\x1bOHh\x1bOF!", "hello!"},
		{"hexllo\x1b[D\x1b[D\x1b[D\x7f", "hello"},
		{"hexllo\x01\x06\x06\x04", "hello"},
		{"hexllo\x01\x1b[C\x1b[C\x1b[3~", "hello"},
		{"one two three\x17\x17four", "one four"},
		{"one two-three\x1b\x7ffour", "one two-four"},
		{"one two\x1bb\x1bbthree \x1bf four", "three one four two"},
		{"one two\x1b[1;5D\x1b[1;3Dthree \x1b[1;5C four", "three one four two"},
		{"one two\x01\x1bdthree", "three two"},
		{"one two\x1bb\x0b\x01\x19", "twoone "},
		{"one two\x15\x19\x19", "one twoone two"},
		{"ab\x14", "ba"},
		{"abc\x01\x06\x14", "bac"},
		{"one\x1b\rtwo", "one\ntwo"},
		{"one\x1b\rtwo\x1b[Hx\x1b[A\x01y", "yone\nxtwo"},
		{"one\x1b\rtwo\x1b[A\x1b[A\x1b[Bx", "one\ntwox"},
		{"\x1b[200~one\r\n  two\x1b[31m\tthree\x00\x1b[201~!", "one\n  two[31m\tthree!"},
		{"\u65e5\u672c\u8a9e\x1b[D\x7f", "\u65e5\u8a9e"},
		{"e\u0301x\x1b[D\x7fa", "ax"},
		{"e\u0301x\x1b[D\x1b[Da", "ae\u0301x"},
		{"a\x1b[99;99X\x1b[19~\x1bOPb", "ab"},
		{"a\x1b\x1b[Db", "ba"},
		{"a\xffb\xc3(", "ab("},
		{"a\u202eb\U000e0041c", "abc"}, // invisible and direction characters are dropped
		{"a\x1b[\x1b[" + strings.Repeat("1", 50) + "b", "a" + strings.Repeat("1", 50) + "b"},
	} {
		for _, slow := range []bool{false, true} {
			e, screen := newEditor(t, test.keys+"\r", slow, 40, 10)
			got, err := e.Read(context.Background(), "> ", ". ")
			if got != test.want || err != nil {
				t.Errorf("%q, slow %v: %q, %v; want %q", test.keys, slow, got, err, test.want)
			}
			if slow || strings.ContainsAny(got, "\t\n") || len(got) > 38 {
				continue
			}
			if shown := strings.TrimPrefix(screen.Text(), "> "); shown != strings.TrimRight(strings.ReplaceAll(got, "\u0301",
				""), " ")+"\n" {
				t.Errorf("%q: the screen has %q", test.keys, shown)
			}
		}
	}
}

func TestEnds(t *testing.T) {
	for _, test := range []struct {
		keys string
		want error
		text string
	}{
		{"\x04", io.EOF, ""},
		{"", io.EOF, ""},
		{"half", io.EOF, ""},
		{"\x03", ErrInterrupted, ""},
		{"half\x03", ErrInterrupted, "half"},
	} {
		e, _ := newEditor(t, test.keys, false, 40, 10)
		if got, err := e.Read(context.Background(), "> ", ". "); !errors.Is(err, test.want) || got != test.text {
			t.Errorf("%q: %q, %v; want %v", test.keys, got, err, test.want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r, _ := io.Pipe() // never delivers anything
	e := &Editor{In: r, Out: io.Discard}
	if _, err := e.Read(ctx, "", ""); !errors.Is(err, context.Canceled) {
		t.Errorf("a read with a canceled context: %v", err)
	}
}

// TestAhead checks that input typed ahead becomes the next message.
func TestAhead(t *testing.T) {
	e, _ := newEditor(t, "one\rtwo\nthree\r", false, 40, 10)
	for _, want := range []string{"one", "two", "three"} {
		if got, err := e.Read(context.Background(), "> ", ". "); got != want || err != nil {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
}

func TestRawEnds(t *testing.T) {
	e, _ := newEditor(t, "one\x1ax\r", false, 40, 10)
	raw, suspended := 0, 0
	e.Raw = func() (func() error, error) {
		raw++
		return func() error { raw--; return nil }, nil
	}
	e.Suspend = func() {
		if suspended++; raw != 0 {
			t.Error("suspended in raw mode")
		}
	}
	if got, err := e.Read(context.Background(), "> ", ". "); got != "onex" || err != nil || raw != 0 || suspended != 1 {
		t.Errorf("%q, %v, raw %d, suspended %d", got, err, raw, suspended)
	}
}

func TestScreen(t *testing.T) {
	const up, down = "\x1b[A", "\x1b[B"
	for _, test := range []struct {
		name, keys, want string
		columns, rows    int
	}{
		{"short", "abc\r", "> abc\n", 10, 5},
		{"exactly a row", "abcdefgh\r", "> abcdefgh\n", 10, 5},
		{"two rows", "abcdefghij\r", "> abcdefgh\nij\n", 10, 5},
		{"edited in its first row", "abcdefghij" + up + "X\r", "> XabcdefghY"[:3] + "abcdefg\nhij\n", 10, 5},
		{"shortened", "abcdefghij\x7f\x7f\x7f\r", "> abcdefg\n", 10, 5},
		{"lines", "one\x1b\rtwo\x1b\rthree\r", "> one\n. two\n. three\n", 20, 5},
		{"wide", "\u65e5\u672c\u8a9e\u65e5\u672c\u8a9e\r", "> \u65e5\u672c\u8a9e\n\u65e5\u672c\u8a9e\n", 9, 5},
		{"joined lines", "one\x1b\rtwo" + up + "\x05\x1b[3~\r", "> onetwo\n", 20, 5},
		{"down to the end", "abcdefghij" + up + down + "k\r", "> abcdefgh\nijk\n", 10, 5},
	} {
		for _, slow := range []bool{false, true} {
			e, screen := newEditor(t, test.keys, slow, test.columns, test.rows)
			if _, err := e.Read(context.Background(), "> ", ". "); err != nil {
				t.Fatal(err)
			}
			if got := screen.Text(); got != test.want {
				t.Errorf("%s, slow %v: %q, want %q", test.name, slow, got, test.want)
			}
		}
	}
}

// TestTall checks that a message taller than the terminal is shown around the cursor, and that nothing above it is
// overwritten.
func TestTall(t *testing.T) {
	lines := strings.TrimSuffix(strings.Repeat("line\r", 30), "\r")
	e, screen := newEditor(t, "\x1b[200~"+lines+"\x1b[201~"+strings.Repeat("\x1b[A", 29)+"x\r", true, 20, 6)
	io.WriteString(screen, "before\r\n")
	got, err := e.Read(context.Background(), "> ", ". ")
	if err != nil || strings.Count(got, "\n") != 29 || !strings.HasPrefix(got, "linex\n") {
		t.Errorf("%q, %v", got, err)
	}
	if text := screen.Text(); !strings.HasPrefix(text, "before\n") || !strings.HasSuffix(text, ". line\n. line\n") {
		t.Errorf("the screen: %q", text)
	}
}

func TestHint(t *testing.T) {
	e, screen := newEditor(t, "", false, 40, 10)
	e.Hint = "say something"
	r, w := io.Pipe()
	e.In = r
	go func() {
		w.Write([]byte("x"))
		w.Write([]byte("\x7f"))
		w.Write([]byte("\r"))
	}()
	if _, err := e.Read(context.Background(), "> ", ". "); err != nil {
		t.Fatal(err)
	}
	if got := screen.Text(); got != ">\n" {
		t.Errorf("the screen has %q", got)
	}
	e.draw()
	if got := screen.Text(); !strings.Contains(got, "> say something") {
		t.Errorf("the screen has %q", got)
	}
	if _, column := screen.Cursor(); column != 2 {
		t.Errorf("the cursor is at %d", column)
	}
}

func TestClear(t *testing.T) {
	e, screen := newEditor(t, "one\x0ctwo\r", true, 20, 4)
	io.WriteString(screen, "before\r\n")
	if _, err := e.Read(context.Background(), "> ", ". "); err != nil {
		t.Fatal(err)
	}
	if got := screen.Text(); got != "> onetwo\n" {
		t.Errorf("the screen has %q", got)
	}
}

// FuzzRead checks that any input yields valid text, and that the screen's cursor matches the layout.
func FuzzRead(f *testing.F) {
	f.Add("one \x1b[A\x1b[D\x17\x1b\rtwo\x1b[200~a\nb\x1b[201~", 10, 4)
	f.Add("\u65e5\u672c\u8a9e\u65e5\u672c\u8a9e\x1b[D\x1b[D", 7, 3)
	f.Fuzz(func(t *testing.T, keys string, columns, rows int) {
		columns, rows = 4+(columns&0x3f), 2+(rows&0xf)
		screen := terminaltest.NewRaw(t, columns, rows)
		e := &Editor{In: &typed{keys, true}, Out: screen, Size: screen.Size}
		e.In = io.MultiReader(e.In, check(func() {
			l := e.layout(columns)
			if _, column := screen.Cursor(); column != l.column {
				t.Errorf("%q: the cursor is in column %d, want %d", keys, column, l.column)
			}
		}))
		got, err := e.Read(context.Background(), "> ", ". ")
		if err == nil && (!utf8.ValidString(got) || strings.ContainsAny(got, "\x1b\r\x00")) {
			t.Errorf("%q: the message %q", keys, got)
		}
	})
}

// check is a reader that calls a function after all keys were read, and then ends.
type check func()

func (c check) Read([]byte) (int, error) {
	c()
	return 0, io.EOF
}
