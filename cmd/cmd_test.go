package cmd

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/spf13/cobra"
)

// endless is a standard input that blocks. It reports its first read.
type endless struct{ read chan struct{} }

func (e endless) Read([]byte) (int, error) {
	close(e.read)
	select {}
}

// TestInterrupt checks that the first signal ends a command that waits for input, without partial output.
func TestInterrupt(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no signal that a process can send itself")
	}
	t.Setenv("INGOT_HOME", filepath.Join(t.TempDir(), "store"))
	demo := filepath.Join("..", "testdata", "models", "demo")
	template := filepath.Join(t.TempDir(), "chat.jinja")
	if err := os.WriteFile(template, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"tokenize", demo},
		{"tokenize", demo, "--decode"},
		{"tokenize", demo, "--chat"},
		{"template", template},
		{"run", "none"},
		{"run", "none", "--prompt-ids", "-"},
	} {
		in := endless{make(chan struct{})}
		go interruptOnce(t, in.read)
		var out, errs bytes.Buffer
		if code := Main(args, in, &out, &errs); code != 130 {
			t.Errorf("%v: exit code %d", args, code)
		}
		if got := errs.String(); got != "ingot: interrupted\n" {
			t.Errorf("%v: standard error: %q", args, got)
		}
		if out.Len() > 0 {
			t.Errorf("%v: standard output: %q", args, out.String())
		}
	}
	if _, err := os.Stat(os.Getenv("INGOT_HOME")); err == nil {
		t.Error("a store was made")
	}
}

func interruptOnce(t *testing.T, when <-chan struct{}) {
	<-when
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Signal(os.Interrupt)
	}
	if err != nil {
		t.Error(err)
	}
}

func TestExitCodes(t *testing.T) {
	t.Setenv("INGOT_HOME", t.TempDir())
	for _, test := range []struct {
		args string
		want int
	}{
		{"version", 0},
		{"--help", 0},
		{"help ls", 0},
		{"completion fish", 0},
		{"ls", 0},
		{"show nosuch", 1},
		{"create name ./nosuch", 1},
		{"frobnicate", 2},
		{"help frobnicate", 2},
		{"completion tcsh", 2},
		{"engine", 2},
		{"ls --bogus", 2},
		{"ls more", 1},
		{"ls more[", 2},
		{"ls none*", 0},
		{"rm all*", 2},
		{"prune", 2},
		{"df more", 2},
		{"ls --format yaml", 2},
		{"show", 2},
		{"serve --host 0.0.0.0:0", 2},
		{"serve --host https://127.0.0.1:0", 2},
		{"serve --keep-alive soon", 2},
		{"serve --allow-host http://models.example", 2},
		{"serve --allow-origin chat.example", 2},
		{"serve --draft many", 2},
		{"stop", 2},
		{"ps --host 127.0.0.1:1", 1},
		{"launch --yes", 2},
		{"launch nobody", 2},
		{"launch claude more", 2},
		{"launch claude --yes", 2},
		{"create a b -q int17", 2},
	} {
		var out, errs bytes.Buffer
		if got := Main(strings.Fields(test.args), strings.NewReader(""), &out, &errs); got != test.want {
			t.Errorf("ingot %s: exit code %d, want %d", test.args, got, test.want)
		}
		if test.want != 0 && (out.Len() > 0 || strings.Count(errs.String(), "\n") != 1) {
			t.Errorf("ingot %s: printed %q and %q, want one line of error", test.args, out.String(), errs.String())
		}
	}
}

// withoutJSON lists the commands that print a text or no data, by name or by path.
var withoutJSON = []string{"delete", "engine check", "schema", "launch", "rm", "login", "logout", "runner", "stop",
	"tag", "template", "tokenize", "completion", "bash", "zsh", "fish", "powershell", "help", "engine", "man",
	"cache", "follow", "worker"}

func TestJSONEverywhere(t *testing.T) {
	commands(t, root(&cli.App{}), func(c *cobra.Command) {
		path := strings.TrimPrefix(c.CommandPath(), "ingot ")
		without := slices.Contains(withoutJSON, c.Name()) || slices.Contains(withoutJSON, path)
		if (c.Flag("json") != nil) == without {
			t.Errorf("%s: has --json: %v", c.CommandPath(), c.Flag("json") != nil)
		}
	})
}

// TestEnvironmentTable compares the table of docs/cli.md with the variables that the program reads and its flags.
func TestEnvironmentTable(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	flags := map[string]bool{}
	commands(t, root(&cli.App{}), func(c *cobra.Command) {
		for _, name := range regexp.MustCompile(`--([a-z0-9-]+)`).FindAllStringSubmatch(c.UsageString(), -1) {
			flags[name[1]] = true
		}
	})
	listed := map[string]bool{}
	rows := regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\| (?:`--([a-z-]+)`)? *\\|")
	for _, row := range rows.FindAllStringSubmatch(string(page), -1) {
		listed[row[1]] = true
		if row[2] != "" && !flags[row[2]] {
			t.Errorf("docs/cli.md: no command has the flag --%s of %s", row[2], row[1])
		}
	}
	read := variables(t)
	for name := range read {
		support := strings.HasSuffix(filepath.Dir(read[name]), "test") // a package that only tests import
		if !listed[name] && !support {
			t.Errorf("%s reads %s, which the table of docs/cli.md lacks", read[name], name)
		}
	}
	for name := range listed {
		if strings.HasPrefix(name, "INGOT_") && read[name] == "" {
			t.Errorf("docs/cli.md lists %s, which nothing reads", name)
		}
	}
	if len(read) < 5 {
		t.Errorf("found only %d variables in the sources", len(read))
	}
}

func commands(t *testing.T, c *cobra.Command, visit func(*cobra.Command)) {
	t.Helper()
	for _, sub := range c.Commands() {
		visit(sub)
		commands(t, sub, visit)
	}
}

// variables returns the environment variables that the sources read, outside tests, each with a file that reads it.
func variables(t *testing.T) map[string]string {
	t.Helper()
	named := regexp.MustCompile(`"(INGOT_[A-Z0-9_]+)"|(?i:getenv|lookupenv)\("([A-Z0-9_]+)"`)
	read := map[string]string{}
	err := filepath.WalkDir("..", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := e.Name()
		if e.IsDir() {
			if name != ".." && strings.HasPrefix(name, ".") || slices.Contains([]string{"testdata", "bench", "shared", "bin"},
				name) {
				return filepath.SkipDir
			}
			return nil
		}
		if !slices.Contains([]string{".go", ".cc", ".h"}, filepath.Ext(name)) || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			read[m[1]+m[2]] = path
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return read
}
