package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/engines"
	"github.com/ingotml/ingot/cmd/cli/input"
	"github.com/ingotml/ingot/cmd/cli/models"
	"github.com/ingotml/ingot/internal/limits/place"
	"github.com/ingotml/ingot/internal/usercache"
	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/batch"
	"github.com/spf13/cobra"
)

func cacheCommand(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "cache",
		Short: "Prepare the prefix cache on disk",
		Args:  cli.Between(0, 0),
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(cacheWarmCommand(a))
	return c
}

// prefixesDir is the default folder of prefix caches on disk, in the user's cache.
const prefixesDir = "prefixes"

type cacheWarmOptions struct {
	prompt, dir string
	raw, json   bool
	float32     bool
	kv          engines.KVFlag
	cpu         engines.CPUFlags
}

// cacheWarmJSON is the output of cache warm.
type cacheWarmJSON struct {
	Model  string `json:"model"`
	Folder string `json:"folder"`
	Tokens int    `json:"tokens"`
	Cached int    `json:"cached"` // of the tokens, that the folder had before
}

func cacheWarmCommand(a *cli.App) *cobra.Command {
	var o cacheWarmOptions
	c := &cobra.Command{
		Use:   "warm NAME --prompt FILE",
		Short: "Evaluate the beginning of prompts ahead of time",
		Long: `Evaluate the beginning that many prompts share, such as a long system prompt, and keep the model's state in
the prefix cache on disk. Servers of the same store and with the same folder then start such prompts at its
end, whatever their API keys: all clients can find out that it was evaluated.

FILE is the text of a system prompt, or a JSON object with "messages" and optionally "tools", as in a request
to /v1/chat/completions. If the last message is not the user's or a tool's, the beginning ends where the next
user's turn begins. With --raw, FILE is the beginning itself, without a chat template.

The default folder is prefixes/ in $INGOT_CACHE. "ingot serve" uses it if it exists and --cache-dir names no
other. --kv-type and --cpu-math must be those of the server.`,
		Example: `  ingot cache warm mymodel --prompt system.txt
  ingot cache warm mymodel --prompt request.json --cache-dir /var/cache/prefixes`,
		Args: cli.Between(1, 1),
		RunE: func(c *cobra.Command, args []string) error { return cacheWarm(a, c, args[0], o) },
	}
	f := c.Flags()
	f.StringVar(&o.prompt, "prompt", "", "`file` with a system prompt, or messages in JSON")
	f.BoolVar(&o.raw, "raw", false, "the file is the beginning of the prompt itself")
	f.StringVar(&o.dir, "cache-dir", "", "`folder` of the prefix cache (default in $INGOT_CACHE)")
	f.BoolVar(&o.float32, "float32", false, "compute in float32")
	f.BoolVar(&o.json, "json", false, "print JSON")
	o.kv.Add(c)
	o.cpu.Add(c)
	return c
}

func cacheWarm(a *cli.App, c *cobra.Command, name string, o cacheWarmOptions) error {
	if o.prompt == "" {
		return cli.Usagef("--prompt FILE is required")
	}
	kv, err := o.kv.Value()
	if err != nil {
		return err
	}
	if o.dir == "" {
		o.dir = usercache.Dir(prefixesDir)
	}
	if o.dir == "" {
		return errors.New("there is no cache folder: give --cache-dir")
	}
	text, err := input.Text(o.prompt)
	if err != nil {
		return err
	}
	ctx := c.Context()
	store, entry, err := models.Resolve(c, name)
	if err != nil {
		return err
	}
	if _, err := store.Secret(ctx); err != nil { // the folder could not be used
		return err
	}
	style, err := models.OpenStyle(store, entry)
	if err != nil {
		return err
	}
	if err := style.Templates.Err(); err != nil {
		return err
	}
	thread, err := engines.Open(ctx, a, o.cpu)
	if err != nil {
		return err
	}
	defer thread.Close()
	model, err := batch.Open(ctx, thread, store, entry, runtime.Options{Float32: o.float32, KV: kv, PrefixCache: -1,
		PrefixDir: o.dir, PrefixDisk: defaultCacheDisk, Log: a.Note})
	if err != nil {
		return err
	}
	defer model.Close()
	ids, err := o.beginning(c, style, model, text)
	if err != nil {
		return err
	}
	stats, err := model.Warm(ctx, ids)
	if err != nil {
		return err
	}
	if err := model.Close(); err != nil { // writes the folder
		return err
	}
	result := cacheWarmJSON{entry.Name.String(), o.dir, len(ids), stats.CachedTokens}
	if o.json {
		return a.PrintJSON(result)
	}
	_, err = fmt.Fprintf(a.Out, "%s: %d tokens in %s, %d of them were there\n", result.Model, result.Tokens, result.Folder,
		result.Cached)
	return err
}

// beginning returns the tokens to evaluate.
func (o cacheWarmOptions) beginning(c *cobra.Command, style *prompt.Style, model *batch.Engine, text string) (
	[]int32, error) {
	inJSON := strings.HasPrefix(strings.TrimSpace(text), "{")
	if o.raw || !style.HasTemplate() && !inJSON {
		return model.Processor().Encode(c.Context(), text)
	}
	now, err := cli.Clock("")
	if err != nil {
		return nil, err
	}
	var q prompt.Conversation
	q.Options.Now = now
	if inJSON {
		file := struct {
			Messages []chat.Message `json:"messages"`
			Tools    []chat.Tool    `json:"tools"`
		}{}
		if err := json.Unmarshal([]byte(text), &file); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(o.prompt), err)
		}
		q.Messages, q.Tools = file.Messages, file.Tools
	} else {
		q.Messages = []chat.Message{{Role: "system", Content: text}}
	}
	q.Messages = style.WithImageMessages(q.Messages)
	return style.Beginning(c.Context(), model.Processor(), q)
}

// servedPrefixes returns the folder of the prefix cache of a server: the one given, or the default one if `ingot cache
// warm` has made it. A folder that others could have written is an error now, and not of each request.
func servedPrefixes(given string) (string, error) {
	dir := given
	if given == "" {
		dir = usercache.Dir(prefixesDir)
	}
	err := place.Trusted(dir)
	switch {
	case dir == "" || given == "" && errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	return filepath.Abs(dir) // a model's process has another working folder
}
