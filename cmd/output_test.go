package cmd

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/internal/launch"
	"github.com/ingotml/ingot/registry"
)

const foulText = "a\x1b[2J\x1b]52;c;eA==\x07\u009b1m\rb\nforged\u202e"

// clean fails the test if a text is not its own clean form.
func clean(t *testing.T, what, text string) {
	t.Helper()
	if terminal.Clean(text) != text || !strings.Contains(text, `\u001b[2J`) {
		t.Errorf("%s: %q", what, text)
	}
}

// TestNotesAreLines checks that standard error is clean in a file too, and that a note or an error is one line.
func TestNotesAreLines(t *testing.T) {
	var errs bytes.Buffer
	a := &app{err: terminal.Notes(&errs)}
	a.note("the server says: %s", foulText) // like the log of `ingot serve`
	a.exitCode(t.Context(), fmt.Errorf("pull: %s", foulText))
	a.exitCode(t.Context(), usagef("%s", foulText))
	clean(t, "notes", errs.String())
	if strings.Count(errs.String(), "\n") != 3 {
		t.Errorf("not three lines: %q", &errs)
	}
	errs.Reset()
	io.WriteString(a.childErr(), foulText)
	clean(t, "what a model's process says", errs.String())
}

// TestLogIsFiltered checks that the log package writes through the filter.
func TestLogIsFiltered(t *testing.T) {
	var out, errs bytes.Buffer
	before := log.Writer()
	t.Setenv("INGOT_HOME", t.TempDir())
	pipe := readerFunc(func([]byte) (int, error) {
		log.Print(foulText)
		return 0, io.EOF
	})
	Main([]string{"tokenize", "../testdata/models/demo"}, pipe, &out, &errs)
	clean(t, "log", errs.String())
	if log.Writer() != before {
		t.Error("the log is not put back")
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestProgressIsClean checks that blob names and errors are clean in progress lines, which bypass the filter.
func TestProgressIsClean(t *testing.T) {
	var b bytes.Buffer
	now := time.Now()
	s := &screen{to: &b, size: func() (int, int) { return 300, 50 }}
	p := newTransferProgress(&b, "pull", onTerminal, s, func() time.Time { return now })
	p.set(registry.Event{Kind: registry.Plan, Total: 200})
	p.set(blob(registry.Begin, foulText, 0, 200))
	e := blob(registry.Retry, foulText, 0, 0)
	e.Err = fmt.Errorf("again: %s", foulText)
	p.set(e)
	p.set(registry.Event{Kind: registry.Warned, Name: foulText, Err: e.Err})
	p.draw()
	s.draw(foulText)
	s.clear()
	drawn := regexp.MustCompile(`\x1b\[[0-9]*A|\x1b\[K|\x1b\[J|\r`).ReplaceAllString(b.String(), "")
	clean(t, "progress", drawn)
	if strings.Contains(drawn, "\nforged") {
		t.Errorf("a line is forged: %q", drawn)
	}
}

// TestStartIsOneComment checks that a line break in an argument does not end the shell comment.
func TestStartIsOneComment(t *testing.T) {
	var out bytes.Buffer
	l := &launcher{app: &app{out: terminal.Data(&out)}}
	if err := l.printStart(launch.Start{Path: "/bin/claude", Args: []string{"--model", "x\ntouch pwned #"}}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != "# /bin/claude --model 'x touch pwned #'\n" {
		t.Errorf("%q", got)
	}
}
