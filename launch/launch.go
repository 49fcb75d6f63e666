// Package launch sets coding clients up for a server of models: the environment, arguments and files with which each asks this server and no
// other.
//
// Contract:
//   - Find comes first: nothing is written, and nobody asked, for a client that is not there.
//   - A file of a client is written only where that changes it, whole or not at all, with what else is in it kept; the first time a copy of
//     what was there stays beside it.
//   - Arguments of the user follow all others, as they were given.
//   - A prompt of a client begins alike in all requests of a session, so that the server finds it in its cache.
//   - No browser is opened.
package launch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// ErrAbsent says that a client is not on this machine.
var ErrAbsent = errors.New("not installed")

// WantedContext is the room, in tokens, below which coding clients soon forget: their own texts take a good part of it.
const WantedContext = 64 << 10

// Model is what clients are told of a model.
type Model struct {
	Name             string
	Context          int // in tokens; 0: not known
	Vision, Thinking bool
}

// Setup is what a client is set up with.
type Setup struct {
	URL   string // of the server, as clients reach it, without a slash at its end
	Key   string // that the server wants; "": none
	Model Model
	Args  []string // of the user, for the client
	Env   []string // that the client's is made from: KEY=VALUE
	Home  string   // the user's folder
}

// key is what clients send, which want to send something.
func (s Setup) key() string {
	if s.Key == "" {
		return "ingot"
	}
	return s.Key
}

// Client is a program that can be launched.
type Client struct {
	Name  string // in commands
	Title string // for people
	Home  string // where it is described

	programs []string   // names that it has, the best first
	places   []string   // below the user's folder, where it may be beside the PATH
	install  *installer // nil: it is the user's to install

	configure func(Setup) ([]string, error) // writes files and gives those that have changed; nil: there are none
	start     func(Setup) change
}

// change is what a client's start differs in from one by hand.
type change struct {
	args []string // before the user's
	env  []variable
}

type variable struct{ name, value string }

// Clients are all that there are, by name.
func Clients() []Client { return []Client{claude, codex, openclaw, opencode} }

// ByName gives a client.
func ByName(name string) (Client, bool) {
	list := Clients()
	i := slices.IndexFunc(list, func(c Client) bool { return c.Name == name })
	if i < 0 {
		return Client{}, false
	}
	return list[i], true
}

// Find gives the path of a client's program. The error of one that is not there wraps ErrAbsent and says where it comes from.
func (c Client) Find(home string) (string, error) {
	for _, name := range c.programs {
		if path, err := exec.LookPath(name); err == nil {
			return filepath.Abs(path)
		}
	}
	for _, place := range c.places {
		if runtime.GOOS == "windows" {
			place += ".exe"
		}
		if path, err := exec.LookPath(filepath.Join(home, filepath.FromSlash(place))); home != "" && err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is %w: %s tells how", c.Title, ErrAbsent, c.Home)
}

// Configure writes what the client reads from files, and gives the paths of those that have changed.
func (c Client) Configure(s Setup) (changed []string, err error) {
	if c.configure == nil {
		return nil, nil
	}
	if changed, err = c.configure(s); err != nil {
		err = fmt.Errorf("set up %s: %w", c.Title, err)
	}
	return changed, err
}

// Start is a program to be started.
type Start struct {
	Path    string
	Args    []string // without its name
	Env     []string
	Set     []string // variables that Env has and the user's has not, or otherwise: KEY=VALUE
	Removed []string // names of variables that the user's has
}

// Start gives how the client is started. Variables that would have it ask somebody else are not in its environment.
func (c Client) Start(path string, s Setup) Start {
	ch := c.start(s)
	out := Start{Path: path, Args: slices.Concat(ch.args, s.Args)}
	for _, kv := range s.Env {
		name, _, _ := strings.Cut(kv, "=")
		given := slices.ContainsFunc(ch.env, func(v variable) bool { return v.name == name })
		switch {
		case given:
		case slices.Contains(foreign, name):
			out.Removed = append(out.Removed, name)
		default:
			out.Env = append(out.Env, kv)
		}
	}
	for _, v := range ch.env {
		out.Set = append(out.Set, v.name+"="+v.value)
	}
	out.Env = append(out.Env, out.Set...)
	return out
}

// foreign are variables that have keys and addresses of other providers.
var foreign = []string{
	"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_OAUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN",
	"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_FOUNDRY", "CLAUDE_CODE_USE_VERTEX",
	"OPENAI_API_BASE", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "CODEX_API_KEY",
	"AZURE_OPENAI_API_KEY", "CEREBRAS_API_KEY", "DEEPSEEK_API_KEY", "FIREWORKS_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY",
	"GROQ_API_KEY", "MISTRAL_API_KEY", "MOONSHOT_API_KEY", "OPENROUTER_API_KEY", "TOGETHER_API_KEY", "XAI_API_KEY", "ZAI_API_KEY",
}

// env looks a variable up.
func env(list []string, name string) string {
	for _, kv := range slices.Backward(list) {
		if key, value, _ := strings.Cut(kv, "="); key == name {
			return value
		}
	}
	return ""
}

// installer is a command that brings a client, and what it takes.
type installer struct {
	command []string
	needs   []need
}

type need struct{ program, address string }

// Installer gives the command that installs the client; nil where there is none. The error names all that it lacks, with where each comes from.
func (c Client) Installer() ([]string, error) {
	if c.install == nil {
		return nil, nil
	}
	var missing []string
	for _, n := range c.install.needs {
		if _, err := exec.LookPath(n.program); err != nil {
			missing = append(missing, fmt.Sprintf("%s (%s)", n.program, n.address))
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%s is %w, and to install it takes %s", c.Title, ErrAbsent, strings.Join(missing, " and "))
	}
	return slices.Clone(c.install.command), nil
}

// ExitError is that of a client that did not end well.
type ExitError struct{ Code int }

func (e *ExitError) Error() string { return fmt.Sprintf("exit status %d", e.Code) }

// exists reports whether there is something at a path.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
