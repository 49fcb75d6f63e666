package serve

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/internal/launch"
)

func TestChoose(t *testing.T) {
	for _, c := range []struct{ in, offered, want, text string }{
		{"\n", "", "a", "a [a]"},
		{"\n", "b", "b", "[b]"},
		{"2\n", "", "b", ""},
		{"b\n", "", "b", ""},
		{"3\nx\n1\n", "b", "a", `"3" is not on the list`},
		{"2", "", "b", ""},
		{"", "", "", "no choice was made"},
		{"x", "", "", "no choice was made"},
	} {
		var errs bytes.Buffer
		l := &launcher{App: &cli.App{In: strings.NewReader(c.in), Err: terminal.Notes(&errs)}}
		got, err := l.choose(t.Context(), "a", []string{"a", "b"}, c.offered)
		text := errs.String()
		if err != nil {
			text += err.Error()
		}
		if got != c.want || !strings.Contains(text, c.text) {
			t.Errorf("%q: %q, %q; want %q, %q", c.in, got, text, c.want, c.text)
		}
	}
}

// TestChooseOffered checks that the client's last model is offered, or else the last launched one.
func TestChooseOffered(t *testing.T) {
	saved := filepath.Join(t.TempDir(), "launch.json")
	for _, s := range []struct{ client, model string }{{"claude", "b"}, {"codex", "gone"}, {"", "c"}} {
		if err := launch.Save(saved, s.client, s.model); err != nil {
			t.Fatal(err)
		}
	}
	for client, want := range map[string]string{"claude": "b", "codex": "c", "opencode": "c", "": "c"} {
		l := &launcher{App: &cli.App{In: strings.NewReader("\n"), Err: terminal.Notes(io.Discard)}, saved: saved}
		if got, err := l.chooseOf(t.Context(), []string{"a", "b", "c"}, client); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", client, got, err, want)
		}
	}
	l := &launcher{App: &cli.App{In: strings.NewReader("\n"), Err: terminal.Notes(io.Discard)}}
	if _, err := l.chooseOf(t.Context(), nil, ""); err == nil || !strings.Contains(err.Error(), "there are no models") {
		t.Errorf("without models: %v", err)
	}
}

func TestShellQuote(t *testing.T) {
	for text, want := range map[string]string{"": "''", "a/b:1": "a/b:1", "a b": "'a b'", "it's": `'it'\''s'`,
		"$x": "'$x'", "~": "'~'"} {
		if got := shellQuote(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestStartIsOneComment checks that a line break in an argument does not end the shell comment.
func TestStartIsOneComment(t *testing.T) {
	var out bytes.Buffer
	l := &launcher{App: &cli.App{Out: terminal.Data(&out)}}
	if err := l.printStart(launch.Start{Path: "/bin/claude", Args: []string{"--model", "x\ntouch pwned #"}}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != "# /bin/claude --model 'x touch pwned #'\n" {
		t.Errorf("%q", got)
	}
}
