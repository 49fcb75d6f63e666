// Package launch configures coding clients to use a model server: it produces the environment, arguments and files that
// make a client use this server and no other.
//
// Contract:
//   - Callers call Find first: for a client that is not installed, nothing is written and the user is not asked.
//   - A client's file is written atomically, and only if its content changes. Everything else in it is preserved.
//     Before the first change, a copy of the original is saved next to it.
//   - The user's arguments come last, unchanged.
//   - All requests of a client's session share a prompt prefix, so that the server finds it in its prefix cache.
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

// ErrAbsent reports a client that is not installed.
var ErrAbsent = errors.New("not installed")

// WantedContext is the smallest useful context length, in tokens: the prompts of coding clients alone use a good part
// of it.
const WantedContext = 64 << 10

// Model describes a model to clients.
type Model struct {
	Name             string
	Context          int // in tokens; 0: unknown
	Vision, Thinking bool
}

// Setup is the configuration for one launch.
type Setup struct {
	URL   string // the server's base URL, as clients reach it, without a trailing slash
	Key   string // the server's API key; "": none
	Model Model
	Args  []string                         // the user's arguments for the client
	Env   []string                         // the environment to start from: KEY=VALUE
	Home  string                           // the user's home directory
	Note  func(format string, args ...any) // tells the user what happened beside; nil: nobody
}

// key returns the API key. Clients require one, so it is a placeholder if the server has none.
func (s Setup) key() string {
	if s.Key == "" {
		return "ingot"
	}
	return s.Key
}

// Client is a program that can be launched.
type Client struct {
	Name  string // as in commands
	Title string // as shown to users
	Home  string // URL of its installation guide

	programs []string   // names of its executable, in order of preference
	places   []string   // paths below the home directory to search after PATH
	install  *installer // nil: the user has to install it

	configure func(Setup) ([]string, error) // writes files and returns the paths of those changed; may be nil
	start     func(Setup) change
}

// change is what a launch adds to a plain start of the client.
type change struct {
	args []string // precede the user's
	env  []variable
}

type variable struct{ name, value string }

// Clients returns all supported clients, sorted by name.
func Clients() []Client { return []Client{claude, codex, openclaw, opencode} }

// ByName returns the client with a name.
func ByName(name string) (Client, bool) {
	list := Clients()
	i := slices.IndexFunc(list, func(c Client) bool { return c.Name == name })
	if i < 0 {
		return Client{}, false
	}
	return list[i], true
}

// Find returns the path of the client's executable. If there is none, the error wraps ErrAbsent and says where to get
// it.
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
	return "", fmt.Errorf("%s is %w: see %s", c.Title, ErrAbsent, c.Home)
}

// Configure writes the client's configuration files and returns the paths of those that changed.
func (c Client) Configure(s Setup) (changed []string, err error) {
	if c.configure == nil {
		return nil, nil
	}
	if changed, err = c.configure(s); err != nil {
		err = fmt.Errorf("set up %s: %w", c.Title, err)
	}
	return changed, err
}

// Start is a command to run.
type Start struct {
	Path    string
	Args    []string // without the program's name
	Env     []string
	Set     []string // variables that differ from the user's environment: KEY=VALUE
	Removed []string // names of variables removed from the user's environment
}

// nodeCA is the variable with a file of further CAs for clients that run on Node.js. They ignore SSL_CERT_FILE.
const nodeCA = "NODE_EXTRA_CA_CERTS"

// Start returns the command that starts the client. Variables that point to other providers are removed from its
// environment.
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
	if ca := env(s.Env, "SSL_CERT_FILE"); strings.HasPrefix(s.URL, "https:") && ca != "" && env(s.Env, nodeCA) == "" {
		out.Set = append(out.Set, nodeCA+"="+ca)
	}
	out.Env = append(out.Env, out.Set...)
	return out
}

// foreign lists the variables with keys and addresses of other providers.
var foreign = []string{
	"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_OAUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN",
	"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_FOUNDRY", "CLAUDE_CODE_USE_VERTEX",
	"OPENAI_API_BASE", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "CODEX_API_KEY",
	"AZURE_OPENAI_API_KEY", "CEREBRAS_API_KEY", "DEEPSEEK_API_KEY", "FIREWORKS_API_KEY", "GEMINI_API_KEY",
	"GOOGLE_GENERATIVE_AI_API_KEY", "GROQ_API_KEY", "MISTRAL_API_KEY", "MOONSHOT_API_KEY", "OPENROUTER_API_KEY",
	"TOGETHER_API_KEY", "XAI_API_KEY", "ZAI_API_KEY",
}

// env returns the value of a variable, or "".
func env(list []string, name string) string {
	for _, kv := range slices.Backward(list) {
		if key, value, _ := strings.Cut(kv, "="); key == name {
			return value
		}
	}
	return ""
}

// installer is the command that installs a client, and the programs it requires.
type installer struct {
	command []string
	needs   []need
}

type need struct{ program, address string }

// Installer returns the command that installs the client, or nil if the user has to install it. The error lists every
// required program that is missing, and where to get it.
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
		return nil, fmt.Errorf("%s is %w, and installing it requires %s", c.Title, ErrAbsent, strings.Join(missing, " and "))
	}
	return slices.Clone(c.install.command), nil
}

// ExitError reports a client that exited with a non-zero status.
type ExitError struct{ Code int }

func (e *ExitError) Error() string { return fmt.Sprintf("exit status %d", e.Code) }

// exists reports whether a file or folder exists at path.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
