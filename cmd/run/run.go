package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/engines"
	"github.com/ingotml/ingot/cmd/cli/input"
	"github.com/ingotml/ingot/cmd/cli/models"
	"github.com/ingotml/ingot/cmd/cli/servers"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server"
	"github.com/spf13/cobra"
)

func runCommand(a *cli.App) *cobra.Command {
	var o runOptions
	c := &cobra.Command{
		Use:   "run NAME [PROMPT]",
		Short: "Chat with a model or complete a prompt",
		Long: `Chat with a model on a terminal, or generate the response to a prompt. The prompt is an argument, standard
input (placed before the argument if both are given) or token ids. Flags override the image's parameters;
what neither sets has the default below. A model without a tokenizer responds with token ids.

If the model has a chat template, the prompt is the user's turn after the image's own system prompt and
messages. The response goes to standard output, with tool calls as JSON lines. The model's thinking goes
to standard error, on a terminal or with --verbose. --raw skips the template and the parsing of the
response.

Without a prompt on a terminal, run starts a conversation: /? lists its commands, Ctrl-C stops a response,
Ctrl-D leaves. Your messages are kept for the keys Up and Down in later conversations.

For a vision model, the prompt argument may contain paths of pictures: words with a slash that end in
.png, .jpg, .jpeg, .gif, .webp or .bmp. Quote a path with spaces, or escape them with \. The pictures are
placed before the text in their order, and their paths are removed from it. A path of a file that does not
exist stays in the text.

A model that the store lacks is imported or pulled if NAME says from where: hf.co/ORG/REPO[@REVISION], or a
name with a registry. run asks first on a terminal; --yes agrees.

If a server at $INGOT_HOST serves the same store, it generates the response. Otherwise, or with --local,
--float32, --prompt-ids, --threads, --cpu-math or --kv-type, run loads the model in its own process.`,
		Example: `  ingot run mymodel
  ingot run mymodel "Once upon a time"
  ingot run hf.co/Qwen/Qwen3-0.6B
  ingot run mymodel "Summarise this text." < text
  ingot run mymodel --temperature 0 --json < prompt.txt
  ingot run mymodel "What is in this picture? ./cat.png"`,
		Args: cli.Between(1, 2),
		RunE: func(c *cobra.Command, args []string) error { return run(a, c, args, o) },
	}
	f := c.Flags()
	f.BoolVar(&o.raw, "raw", false, "use the prompt as it is, without a chat template")
	f.StringVar(&o.system, "system", "", "system prompt `text` (default the image's)")
	f.StringVar(&o.think, "think", "", "thinking: on, off, minimal, low, medium, high, xhigh or max")
	f.StringVar(&o.format, "format", "", "json, schema, regex:RE, ebnf:TEXT, lark:TEXT or `file`")
	f.BoolVar(&o.strictSchema, "strict-schema", false, "refuse keywords that the specification lacks")
	f.BoolVar(&o.bestEffort, "best-effort", false, "leave out what cannot be enforced, and say so")
	f.StringVar(&o.promptIDs, "prompt-ids", "", "`file` with a JSON array of token ids, or - for stdin")
	addParameterFlags(f)
	f.BoolVar(&o.ignoreEOS, "ignore-eos", false, "continue after an end-of-text token")
	f.BoolVar(&o.float32, "float32", false, "compute in float32 in this process")
	f.StringVar(&o.draft, "draft", "auto", "draft depth in tokens per step: a number, auto or off")
	o.key.Add(c, "server's API key")
	f.BoolVar(&o.local, "local", false, "load the model in this process; use no server")
	o.kv.Add(c)
	o.cpu.Add(c)
	f.BoolVar(&o.json, "json", false, "print one JSON object at the end")
	f.BoolVar(&o.yes, "yes", false, "import or pull a missing model without asking")
	f.BoolVar(&o.verbose, "verbose", false, "print statistics on standard error")
	return c
}

type runOptions struct {
	raw, local, yes    bool
	system, think      string
	promptIDs, format  string
	ignoreEOS, float32 bool
	json, verbose      bool
	strictSchema       bool
	bestEffort         bool
	draft              string
	key                servers.KeyFlag
	kv                 engines.KVFlag
	cpu                engines.CPUFlags
	idsOnly            bool // the model has no tokenizer
}

func run(a *cli.App, c *cobra.Command, args []string, o runOptions) error {
	ctx := c.Context()
	if o.promptIDs != "" && len(args) > 1 {
		return cli.Usagef("a prompt and --prompt-ids cannot be combined")
	}
	if err := o.checkChat(c); err != nil {
		return err
	}
	if err := checkParameters(c.Flags()); err != nil {
		return err
	}
	if _, err := o.kv.Value(); err != nil {
		return err
	}
	format, err := o.readFormat(ctx)
	if err != nil {
		return err
	}
	if _, err := runtime.ParseDraft(o.draft); err != nil {
		return cli.Usagef("--draft: %v", err)
	}
	if len(args) == 1 && o.promptIDs == "" && !o.json && !o.raw && a.OnTerminals() {
		return interact(a, c, args[0], o, format)
	}
	prompt, err := readPrompt(ctx, a, args[1:], o)
	if err != nil {
		return err
	}
	if prompt.ids == nil && prompt.text == "" && prompt.pictures == nil {
		return errors.New("the prompt is empty") // check before a tokenizer adds special tokens
	}
	name, err := models.Ensure(ctx, a, args[0], o.yes, mlx.Available)
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
	if o.raw || prompt.ids != nil {
		style.Templates = nil
	} else if err := o.checkTemplate(c, entry, style); err != nil {
		return err
	}
	pictures, err := input.Pictures(prompt.pictures)
	if err != nil {
		return err
	}
	backends := newBackends(a, c, store, o)
	defer backends.close()
	model, err := backends.open(ctx, entry, style)
	if err != nil {
		return err
	}
	defer model.close()
	o.idsOnly = model.idsOnly()
	r := o.modelRequest(c, style, prompt, pictures)
	r.format = format
	result := newRunJSON()
	if err := collect(a, model.generate(ctx, r), newResponseWriter(a, &result, o), o); err != nil {
		return err
	}
	if o.json {
		return a.PrintJSON(result)
	}
	return nil
}

// request applies the flags to the image's defaults.
func (o runOptions) request(d runtime.Defaults) runtime.Request {
	r := runtime.Request{IgnoreEOS: o.ignoreEOS}
	r.Draft, _ = runtime.ParseDraft(o.draft) // already validated
	d.ApplyTo(&r)
	return r
}

// promptInput is a text with paths of pictures, or token ids.
type promptInput struct {
	text     string
	pictures []string
	ids      []int32
}

func readPrompt(ctx context.Context, a *cli.App, args []string, o runOptions) (promptInput, error) {
	if o.promptIDs != "" {
		ids, err := input.IDs(ctx, a, o.promptIDs)
		return promptInput{ids: ids}, err
	}
	var p promptInput
	if len(args) > 0 {
		var missing []string
		p.text, p.pictures, missing = input.TakePictures(args[0])
		for _, path := range missing {
			a.Note("note: file %s does not exist: the path stays in the text", path)
		}
	}
	if cli.IsTerminal(a.In) {
		if len(args) == 0 {
			return p, cli.Usagef("no prompt: pass one as an argument or on standard input")
		}
		return p, nil
	}
	text, err := io.ReadAll(a.Stdin(ctx))
	if err != nil {
		return p, fmt.Errorf("read the prompt: %w", err)
	}
	given := strings.TrimSuffix(string(text), "\n")
	if given != "" && p.text != "" {
		given += "\n\n"
	}
	p.text = given + p.text
	return p, nil
}

type runJSON struct {
	IDs        []int32       `json:"ids"`
	Text       string        `json:"text"`
	Thinking   string        `json:"thinking,omitempty"`
	ToolCalls  []runToolCall `json:"tool_calls,omitempty"`
	DoneReason string        `json:"done_reason"`
	LeftOut    []string      `json:"left_out,omitempty"` // what --best-effort did not enforce
	Stats      server.Stats  `json:"stats"`
}

func newRunJSON() runJSON { return runJSON{IDs: []int32{}} }

// collect consumes a response and passes its events to w.
func collect(a *cli.App, parts iter.Seq2[responsePart, error], w *responseWriter, o runOptions) error {
	var damage error
	for part, err := range parts {
		if err != nil {
			return err
		}
		w.result.IDs = append(w.result.IDs, part.ids...)
		w.result.DoneReason, w.result.Stats, w.result.LeftOut = part.done, part.stats, part.leftOut
		if part.damage != nil {
			damage = part.damage
		}
		if err := w.add(part.events); err != nil {
			return err
		}
	}
	if err := w.end(); err != nil {
		return err
	}
	if damage != nil {
		a.Note("note: a part of the response is shown unparsed: %v", damage)
	}
	for _, what := range w.result.LeftOut {
		a.Note("note: not enforced: %s", what)
	}
	if o.verbose {
		fmt.Fprintf(a.Err, "\n%s\n", statsText(w.result.Stats))
	}
	return nil
}

// statsText formats the statistics of a response.
func statsText(s server.Stats) string {
	cached := ""
	if s.CachedTokens > 0 {
		cached = fmt.Sprintf(", %d of them cached,", s.CachedTokens)
	}
	text := fmt.Sprintf("prompt: %d tokens%s in %.2f s (%.1f tokens/s); generated: %d tokens in %.2f s (%.1f tokens/s)",
		s.PromptTokens, cached, s.PromptSeconds, rate(s.PromptTokens-s.CachedTokens, s.PromptSeconds),
		s.Tokens, s.Seconds, rate(s.Tokens, s.Seconds))
	if s.Drafted > 0 {
		text += fmt.Sprintf("\ndrafts: %d tokens, %d of them accepted; target steps: %d",
			s.Drafted, s.Accepted, s.TargetSteps)
	}
	return text
}

func rate(n int, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return float64(n) / seconds
}
