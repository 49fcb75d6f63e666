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
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// onTerminals reports whether standard input and standard output are terminals.
func (a *app) onTerminals() bool { return isTerminal(a.in) && a.out.IsTerminal() }

// isTerminal reports whether a reader is a terminal.
func isTerminal(f io.Reader) bool {
	file, ok := f.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// converse runs an interactive session on a terminal.
func (a *app) converse(c *cobra.Command, arg string, o runOptions, format runtime.Format) error {
	ctx := c.Context()
	name, err := a.ensure(ctx, arg, o.yes, mlx.Available)
	if err != nil {
		return err
	}
	store, entry, err := resolve(c, name)
	if err != nil {
		return err
	}
	style, err := openStyle(store, entry)
	if err != nil {
		return err
	}
	if err := o.checkTemplate(c, entry, style); err != nil {
		return err
	}
	backends := a.backends(c, store, o)
	backends.prefix = true
	defer backends.close()
	s := &session{app: a, o: o, store: store, open: backends.open, format: format}
	defer s.closeBackend()
	if err := s.begin(entry, style, flagParameters(c.Flags())); err != nil {
		return err
	}
	if c.Flags().Changed("system") {
		s.system = o.system
	}
	if err := s.takeTerminal(ctx); err != nil {
		return err
	}
	if err := s.openBackend(ctx); err != nil {
		return err
	}
	if err := s.showMessages(); err != nil {
		return err
	}
	return s.run(ctx)
}

// takeTerminal sets up the history and the line editor.
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

// terminalColumns returns the terminal's width, or 0 if it is unknown.
func (s *session) terminalColumns() int {
	columns, _ := s.out.Size()
	return columns
}

// run reads and executes the user's input until the user leaves.
func (s *session) run(ctx context.Context) error {
	for {
		text, err := s.next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, terminal.ErrInterrupted):
			if text == "" {
				fmt.Fprintln(s.out, "Press Ctrl-D or type /bye to leave.")
			}
			continue
		case err != nil:
			return err
		case strings.TrimSpace(text) == "":
			continue
		}
		if err := s.history.Add(text); err != nil {
			s.note("note: %v", err)
			s.history.Path = "" // warn only once
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

// turn executes a command, or sends a message and shows the response. Ctrl-C ends only the turn.
func (s *session) turn(ctx context.Context, text string) error {
	ctx, release := s.catchInterrupt(ctx)
	defer release()
	if isCommand, err := s.runCommand(ctx, text); isCommand || err != nil {
		return err
	}
	err := s.send(ctx, unquote(text))
	fmt.Fprintln(s.out)
	return err
}

const quotes = `"""`

// next reads a message. A message that begins with three quotes, or a /set system whose text does, continues until
// three quotes.
func (s *session) next(ctx context.Context) (string, error) {
	text, err := s.read(ctx, promptFirst)
	for err == nil && quoted(text) == 1 {
		var line string
		line, err = s.read(ctx, promptMore)
		text += "\n" + line
	}
	return text, err
}

// quoted counts the triple quotes in a text that begins with them, up to 2. It returns 0 for other texts.
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

// unquote removes the triple quotes, with a line break after the first and before the last.
func unquote(text string) string {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), quotes)
	if !ok {
		return text
	}
	inside, after, _ := strings.Cut(rest, quotes)
	return strings.TrimSuffix(strings.TrimPrefix(inside, "\n"), "\n") + after
}

// plainLineReader reads lines from a terminal without escape sequences.
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

// historyPath returns the file that keeps messages for later sessions, or "" if the system has no place for it.
func historyPath() string { return statePath("run-history") }

// statePath returns the path of a state file, or "" if the system has no place for it.
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
