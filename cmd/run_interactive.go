package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"

	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/runtime"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// onTerminals tells whether somebody sits there who can be talked with.
func (a *app) onTerminals() bool { return isTerminal(a.in) && a.out.IsTerminal() }

// isTerminal tells whether a reader is a terminal.
func isTerminal(f io.Reader) bool {
	file, ok := f.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// converse leads a conversation on a terminal.
func (a *app) converse(c *cobra.Command, arg string, o runOptions, format runtime.Format) error {
	ctx := c.Context()
	store, entry, err := resolve(c, arg)
	if err != nil {
		return err
	}
	style, err := openStyle(store, entry)
	if err != nil {
		return err
	}
	if err := o.readTemplate(c, store, entry, style); err != nil {
		return err
	}
	voices := a.voices(c, store, o)
	voices.prefix = true
	defer voices.close()
	s := &session{app: a, o: o, store: store, open: voices.open, format: format}
	defer s.sleep()
	if err := s.begin(entry, style, o.parameters(c)); err != nil {
		return err
	}
	if c.Flags().Changed("system") {
		s.system = o.system
	}
	if err := s.takeTerminal(ctx); err != nil {
		return err
	}
	if err := s.wake(ctx); err != nil {
		return err
	}
	if err := s.showMessages(); err != nil {
		return err
	}
	return s.run(ctx)
}

// takeTerminal sets up who reads what the user writes.
func (s *session) takeTerminal(ctx context.Context) (err error) {
	if s.history, err = terminal.OpenHistory(historyPath()); err != nil {
		s.note("note: %v", err)
	}
	if os.Getenv("TERM") == "dumb" {
		lines := &plainLineReader{in: s.stdin(ctx), out: s.out}
		s.read = lines.read
		return nil
	}
	editor := terminal.NewEditor(s.in.(*os.File), s.out.File())
	editor.History = s.history
	if os.Getenv("NO_COLOR") == "" {
		editor.Hint = "a message, or /? for help"
	}
	s.read = func(ctx context.Context, prompt string) (string, error) { return editor.Read(ctx, prompt, promptMore) }
	s.columns = s.terminalColumns
	return nil
}

// terminalColumns is how wide the terminal is; 0 where it does not say.
func (s *session) terminalColumns() int {
	columns, _ := s.out.Size()
	return columns
}

// run carries out what the user writes, until that is to leave.
func (s *session) run(ctx context.Context) error {
	for {
		text, err := s.next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, terminal.ErrInterrupted):
			if text == "" {
				fmt.Fprintln(s.out, "Ctrl-D or /bye leaves.")
			}
			continue
		case err != nil:
			return err
		case strings.TrimSpace(text) == "":
			continue
		}
		if err := s.history.Add(text); err != nil {
			s.note("note: %v", err)
			s.history.Path = "" // it was said once
		}
		err = s.turn(ctx, text)
		switch {
		case errors.Is(err, errLeave):
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, context.Canceled):
			fmt.Fprintln(s.err, "stopped")
		case err != nil:
			s.tell("%v%s", err, remedy(err))
		}
	}
}

// turn carries out a command, or shows the answer to a message. Ctrl-C ends it, and nothing else.
func (s *session) turn(ctx context.Context, text string) error {
	ctx, release := s.catchInterrupt(ctx)
	defer release()
	if is, err := s.obey(ctx, text); is || err != nil {
		return err
	}
	err := s.say(ctx, unquote(text))
	fmt.Fprintln(s.out)
	return err
}

const quotes = `"""`

// next reads a message. One that begins with three quotes, or sets the system text to what does, ends with three quotes.
func (s *session) next(ctx context.Context) (string, error) {
	text, err := s.read(ctx, promptFirst)
	for err == nil && quoted(text) == 1 {
		var line string
		line, err = s.read(ctx, promptMore)
		text += "\n" + line
	}
	return text, err
}

// quoted counts the three quotes of a text that begins with some.
func quoted(text string) int {
	if first, rest := cutWord(text); first == "/set" {
		if word, value := cutWord(rest); word == "system" {
			text = value
		}
	}
	if !strings.HasPrefix(strings.TrimSpace(text), quotes) {
		return 0
	}
	return min(2, strings.Count(text, quotes))
}

// unquote takes three quotes away, with a line break behind the first and before the last of them.
func unquote(text string) string {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), quotes)
	if !ok {
		return text
	}
	inside, after, _ := strings.Cut(rest, quotes)
	return strings.TrimSuffix(strings.TrimPrefix(inside, "\n"), "\n") + after
}

// plainLineReader reads lines from a terminal that knows no escape sequences.
type plainLineReader struct {
	in  io.Reader
	out io.Writer
	buf []byte
}

func (r *plainLineReader) read(_ context.Context, prompt string) (string, error) {
	fmt.Fprint(r.out, prompt)
	for {
		if i := strings.IndexByte(string(r.buf), '\n'); i >= 0 {
			line := string(r.buf[:i])
			r.buf = r.buf[i+1:]
			return line, nil
		}
		b := make([]byte, 4096)
		n, err := r.in.Read(b)
		r.buf = append(r.buf, b[:n]...)
		if n == 0 && err != nil {
			return "", err
		}
	}
}

// historyPath is where messages are kept for later sessions; "" where the system has no place for that.
func historyPath() string { return statePath("run-history") }

// statePath is where a file lies that is kept from run to run; "" where the system has no place for that.
func statePath(name string) string {
	if goruntime.GOOS == "windows" || goruntime.GOOS == "darwin" {
		dir, err := os.UserConfigDir()
		if err != nil {
			return ""
		}
		return filepath.Join(dir, "ingot", name)
	}
	home, err := os.UserHomeDir()
	dir := cmp.Or(os.Getenv("XDG_STATE_HOME"), filepath.Join(home, ".local", "state"))
	if err != nil && home == "" && os.Getenv("XDG_STATE_HOME") == "" || !filepath.IsAbs(dir) {
		return ""
	}
	return filepath.Join(dir, "ingot", name)
}
