// Package cli is what all commands share: the application's context, its output, progress, tables, sizes, errors with
// exit codes, questions and completion. The packages below it have the flags and steps that several groups share.
package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/manifest/store"
)

// App is the state that all commands share. Out and Err sanitize text that is written to a terminal; see
// [terminal.Output].
type App struct {
	In       io.Reader
	Out, Err *terminal.Output
	Quiet    bool
	Command  string // the running command with its parents and without arguments, such as "ingot engine status"

	// Execute runs another command line with this state.
	Execute func(ctx context.Context, args []string) error

	interrupts      interrupts
	CredentialFiles map[string][]byte // what --creds and the like have read, by file: a pipe can be read once
}

// OpenStore opens the store and creates it if it does not exist. Processes that wait for its lock see this command's
// name.
func (a *App) OpenStore() (*store.Store, error) {
	return store.Open("", store.Command(a.Command))
}

// Tell prints one line on standard error. Line breaks in the text are escaped.
func (a *App) Tell(format string, args ...any) {
	fmt.Fprintln(a.Err, terminal.Line(fmt.Sprintf(format, args...)))
}

// Note prints a line on standard error unless --quiet is set.
func (a *App) Note(format string, args ...any) {
	if !a.Quiet {
		a.Tell(format, args...)
	}
}

// PrintJSON prints a value as indented JSON. The json package escapes only the control characters below U+0020; Clean
// escapes the others, also in files. The value stays the same.
func (a *App) PrintJSON(v any) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(a.Out, terminal.Clean(b.String()))
	return err
}

// ChildErr returns the writer for the standard error of models' processes.
func (a *App) ChildErr() io.Writer {
	if a.Quiet {
		return nil
	}
	return a.Err
}

// NoteReadable prints a note if the mode of a file with a secret lets other users read it.
func NoteReadable(a *App, file string, mode fs.FileMode) {
	if mode.IsRegular() && mode.Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		a.Note("note: other users may read %s (mode %04o); restrict it with `chmod 600`", file, mode.Perm())
	}
}

// NoteMode prints a note if other users may read a file with a secret.
func NoteMode(a *App, file string) {
	if info, err := os.Stat(file); err == nil {
		NoteReadable(a, file, info.Mode())
	}
}

// ExistingStore opens the store and fails if it does not exist.
func ExistingStore() (*store.Store, error) { return store.OpenExisting("") }

// StatePath returns the path of a state file, or "" if the system has no place for it.
func StatePath(name string) string {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
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

// Screen returns a screen that draws on standard error.
func (a *App) Screen() *Screen {
	return &Screen{To: a.Err.Drawing(), Size: func() (int, int) {
		if columns, rows := a.Err.Size(); columns > 0 {
			return columns, rows
		}
		return 80, 24
	}}
}

// PrintLine prints a line that may have foreign text.
func (a *App) PrintLine(text string) error {
	_, err := fmt.Fprintln(a.Out, terminal.Line(text))
	return err
}
