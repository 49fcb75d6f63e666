package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server"
	"github.com/spf13/cobra"
)

func (a *app) runCmd() *cobra.Command {
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
		Args: between(1, 2),
		RunE: func(c *cobra.Command, args []string) error { return a.run(c, args, o) },
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
	o.key.add(c, "server's API key")
	f.BoolVar(&o.local, "local", false, "load the model in this process; use no server")
	o.kv.add(c)
	o.cpu.add(c)
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
	key                keyFlag
	kv                 kvFlag
	cpu                cpuFlags
	idsOnly            bool // the model has no tokenizer
}

func (a *app) run(c *cobra.Command, args []string, o runOptions) error {
	ctx := c.Context()
	if o.promptIDs != "" && len(args) > 1 {
		return usagef("a prompt and --prompt-ids cannot be combined")
	}
	if err := o.checkChat(c); err != nil {
		return err
	}
	if err := checkParameters(c.Flags()); err != nil {
		return err
	}
	if _, err := o.kv.value(); err != nil {
		return err
	}
	format, err := o.readFormat(ctx)
	if err != nil {
		return err
	}
	if _, err := runtime.ParseDraft(o.draft); err != nil {
		return usagef("--draft: %v", err)
	}
	if len(args) == 1 && o.promptIDs == "" && !o.json && !o.raw && a.onTerminals() {
		return a.converse(c, args[0], o, format)
	}
	prompt, err := a.readPrompt(ctx, args[1:], o)
	if err != nil {
		return err
	}
	if prompt.ids == nil && prompt.text == "" && prompt.pictures == nil {
		return errors.New("the prompt is empty") // check before a tokenizer adds special tokens
	}
	name, err := a.ensure(ctx, args[0], o.yes, mlx.Available)
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
	if o.raw || prompt.ids != nil {
		style.Templates = nil
	} else if err := o.checkTemplate(c, entry, style); err != nil {
		return err
	}
	pictures, err := readPictures(prompt.pictures)
	if err != nil {
		return err
	}
	backends := a.backends(c, store, o)
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
	if err := a.collect(model.generate(ctx, r), a.responseWriter(&result, o), o); err != nil {
		return err
	}
	if o.json {
		return a.printJSON(result)
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

// prompt is a text with paths of pictures, or token ids.
type promptInput struct {
	text     string
	pictures []string
	ids      []int32
}

func (a *app) readPrompt(ctx context.Context, args []string, o runOptions) (promptInput, error) {
	if o.promptIDs != "" {
		ids, err := a.readIDs(ctx, o.promptIDs)
		return promptInput{ids: ids}, err
	}
	var p promptInput
	if len(args) > 0 {
		var missing []string
		p.text, p.pictures, missing = takePictures(args[0])
		for _, path := range missing {
			a.note("note: file %s does not exist: the path stays in the text", path)
		}
	}
	if isTerminal(a.in) {
		if len(args) == 0 {
			return p, usagef("no prompt: pass one as an argument or on standard input")
		}
		return p, nil
	}
	text, err := io.ReadAll(a.stdin(ctx))
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

func (a *app) readIDs(ctx context.Context, path string) ([]int32, error) {
	name, text, err := path, []byte(nil), error(nil)
	if path == "-" {
		name = "standard input"
		text, err = io.ReadAll(a.stdin(ctx))
	} else {
		text, err = await(ctx, func() ([]byte, error) { return os.ReadFile(path) })
	}
	if err != nil {
		return nil, fmt.Errorf("read token ids: %w", err)
	}
	ids := []int32{}
	if err := json.Unmarshal(text, &ids); err != nil {
		return nil, fmt.Errorf("%s: want a JSON array of token ids: %w", name, err)
	}
	return ids, nil
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
func (a *app) collect(parts iter.Seq2[responsePart, error], w *responseWriter, o runOptions) error {
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
		a.note("note: a part of the response is shown unparsed: %v", damage)
	}
	for _, what := range w.result.LeftOut {
		a.note("note: not enforced: %s", what)
	}
	if o.verbose {
		fmt.Fprintf(a.err, "\n%s\n", statsText(w.result.Stats))
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
