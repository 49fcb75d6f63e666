package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/models"
	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime"
	"github.com/spf13/cobra"
)

// interact runs an interactive session on a terminal.
func interact(a *cli.App, c *cobra.Command, arg string, o runOptions, format runtime.Format) error {
	ctx := c.Context()
	name, err := models.Ensure(ctx, a, arg, o.yes, mlx.Available)
	if err != nil {
		return err
	}
	store, entry, err := models.Resolve(c, name)
	if err != nil {
		return err
	}
	style, err := models.OpenStyle(store, entry)
	if err != nil {
		return err
	}
	if err := o.checkTemplate(c, entry, style); err != nil {
		return err
	}
	backends := newBackends(a, c, store, o)
	backends.prefix = true
	defer backends.close()
	s := &session{App: a, o: o, store: store, open: backends.open, format: format}
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
		s.Note("note: %v", err)
	}
	if os.Getenv("TERM") == "dumb" {
		lines := &plainLineReader{in: s.Stdin(ctx), out: s.Out}
		s.read = lines.read
		return nil
	}
	editor := terminal.NewEditor(s.In.(*os.File), s.Out.File())
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
	columns, _ := s.Out.Size()
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
				fmt.Fprintln(s.Out, "Press Ctrl-D or type /bye to leave.")
			}
			continue
		case err != nil:
			return err
		case strings.TrimSpace(text) == "":
			continue
		}
		if err := s.history.Add(text); err != nil {
			s.Note("note: %v", err)
			s.history.Path = "" // warn only once
		}
		err = s.turn(ctx, text)
		switch {
		case errors.Is(err, errLeave):
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, context.Canceled):
			fmt.Fprintln(s.Err, "stopped")
		case err != nil:
			s.Tell("%v%s", err, cli.Remedy(err))
		}
	}
}

// turn executes a command, or sends a message and shows the response. Ctrl-C ends only the turn.
func (s *session) turn(ctx context.Context, text string) error {
	ctx, release := s.CatchInterrupt(ctx)
	defer release()
	if isCommand, err := s.runCommand(ctx, text); isCommand || err != nil {
		return err
	}
	err := s.send(ctx, unquote(text))
	fmt.Fprintln(s.Out)
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
func historyPath() string { return cli.StatePath("run-history") }
