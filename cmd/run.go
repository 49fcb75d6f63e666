package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server/talk"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func (a *app) runCmd() *cobra.Command {
	var o runOptions
	c := &cobra.Command{
		Use:   "run NAME [PROMPT]",
		Short: "Let a model continue a prompt",
		Long: `Let a model continue a prompt, given as an argument, on standard input, or as token ids.
What flags leave open, the image's parameters decide. A model without a tokenizer answers with token ids, too.

Where the model has a chat template, the prompt is the user's turn of a conversation that begins with the image's own
system text and messages. The answer goes to standard output, calls of tools as lines of JSON; what the model thinks goes
to standard error, on a terminal or with --verbose. --raw gives prompt and answer as they are.

Models that see are shown the pictures whose paths are in a prompt given as an argument: words with a slash that end in
.png, .jpg, .jpeg, .gif, .webp or .bmp, in quotes or with \ before spaces where they have some. They come before the text,
in their order, and their paths are taken out of it. A path that leads to no file stays text.`,
		Example: `  ingot run mymodel "Once upon a time"
  ingot run mymodel --temperature 0 --json < prompt.txt
  ingot run mymodel "What is in this picture? ./cat.png"`,
		Args: between(1, 2),
		RunE: func(c *cobra.Command, args []string) error { return a.run(c, args, o) },
	}
	f := c.Flags()
	f.BoolVar(&o.raw, "raw", false, "give the prompt to the model as it is, without a chat template")
	f.StringVar(&o.system, "system", "", "system `text` of the conversation, in place of the image's")
	f.StringVar(&o.think, "think", "", "whether the model thinks before it answers: on, off, low, medium or high")
	f.StringVar(&o.format, "format", "", "what the answer has to be: json, a JSON schema or a `file` with one or with an EBNF grammar, regex:PATTERN or ebnf:GRAMMAR")
	f.StringVar(&o.promptIDs, "prompt-ids", "", "JSON array of token ids in `file`, - for standard input; taken as they are")
	f.Float64Var(&o.sampling.Temperature, "temperature", 0, "0 takes the most likely token")
	f.IntVar(&o.sampling.TopK, "top-k", 0, "choose among the K most likely tokens; 0 is off")
	f.Float64Var(&o.sampling.TopP, "top-p", 0, "choose among the most likely tokens that sum to P; 1 is off")
	f.Float64Var(&o.sampling.MinP, "min-p", 0, "drop tokens less likely than P times the likeliest; 0 is off")
	f.Int64Var(&o.seed, "seed", -1, "repeat a run exactly; negative is a new one each time")
	f.IntVar(&o.maxTokens, "max-tokens", 0, "most tokens to generate; 0 is what the context leaves")
	f.StringArrayVar(&o.stop, "stop", nil, "end before this text (repeatable)")
	f.BoolVar(&o.ignoreEOS, "ignore-eos", false, "go on after the end of the text")
	f.BoolVar(&o.float32, "float32", false, "compute in float32")
	o.cpu.add(c)
	f.BoolVar(&o.json, "json", false, "print one JSON object at the end, no text before")
	f.BoolVar(&o.verbose, "verbose", false, "print statistics to standard error")
	return c
}

type runOptions struct {
	raw                bool
	system, think      string
	promptIDs, format  string
	sampling           runtime.Sampling
	seed               int64
	maxTokens          int
	stop               []string
	ignoreEOS, float32 bool
	json, verbose      bool
	cpu                cpuFlags
	idsOnly            bool // the model has no text
}

func (a *app) run(c *cobra.Command, args []string, o runOptions) error {
	ctx := c.Context()
	if o.promptIDs != "" && len(args) > 1 {
		return usagef("a prompt and --prompt-ids exclude each other")
	}
	if err := o.checkChat(c); err != nil {
		return err
	}
	format, err := readFormat(ctx, o.format)
	if err != nil {
		return err
	}
	prompt, err := a.readPrompt(ctx, args[1:], o)
	if err != nil {
		return err
	}
	if prompt.ids == nil && prompt.text == "" && prompt.pictures == nil {
		return errors.New("the prompt is empty") // before a tokenizer adds its own
	}
	store, entry, err := resolve(c, args[0])
	if err != nil {
		return err
	}
	if err := store.CheckPresent(entry, false); err != nil {
		return err
	}
	conversation, err := o.conversation(c, store, entry, prompt)
	if err != nil {
		return err
	}
	pictures, err := readPictures(prompt.pictures)
	if err != nil {
		return err
	}
	thread, err := a.openEngine(ctx, o.cpu)
	if err != nil {
		return err
	}
	defer thread.Close()
	model, err := runtime.Load(ctx, thread, store, entry, runtime.Options{Float32: o.float32})
	if err != nil {
		return err
	}
	defer model.Close()
	request := o.request(c, model.Defaults())
	request.Format = format
	var reader talk.Reader
	switch {
	case prompt.ids != nil:
		request.Prompt = prompt.ids
	case conversation != nil:
		var p *talk.Prompt
		if p, err = conversation.begin(ctx, model, pictures); err == nil {
			request.Prompt, request.Pictures, request.Special, reader = p.IDs, p.Pictures, p.Special, p.Reader
			request.Format.After = p.Thinking
		}
	default:
		var text string
		if text, request.Pictures, err = model.ShowPictures(prompt.text, pictures); err == nil {
			request.Prompt, err = model.Encode(text)
		}
	}
	if err != nil {
		return err
	}
	o.idsOnly = model.Tokenizer() == nil
	return a.generate(ctx, model, request, o, reader)
}

// request puts flags over the image's defaults.
func (o runOptions) request(c *cobra.Command, d runtime.Defaults) runtime.Request {
	r := runtime.Request{Sampling: d.Sampling, MaxTokens: d.MaxTokens, Stop: d.Stop, IgnoreEOS: o.ignoreEOS}
	given := c.Flags().Changed
	if given("temperature") {
		r.Sampling.Temperature = o.sampling.Temperature
	}
	if given("top-k") {
		r.Sampling.TopK = o.sampling.TopK
	}
	if given("top-p") {
		r.Sampling.TopP = o.sampling.TopP
	}
	if given("min-p") {
		r.Sampling.MinP = o.sampling.MinP
	}
	if given("seed") {
		r.Sampling.Seed = &o.seed
	}
	if given("max-tokens") {
		r.MaxTokens = o.maxTokens
	}
	if given("stop") {
		r.Stop = o.stop
	}
	return r
}

// prompt is a text and the paths of its pictures, or token ids.
type prompt struct {
	text     string
	pictures []string
	ids      []int32
}

func (a *app) readPrompt(ctx context.Context, args []string, o runOptions) (prompt, error) {
	if o.promptIDs != "" {
		ids, err := a.readIDs(ctx, o.promptIDs)
		return prompt{ids: ids}, err
	}
	if len(args) > 0 {
		text, pictures, missing := takePictures(args[0])
		for _, path := range missing {
			a.note("there is no file %s: the path is a part of the text", path)
		}
		return prompt{text: text, pictures: pictures}, nil
	}
	if f, ok := a.in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return prompt{}, usagef("no prompt: give one as an argument or on standard input")
	}
	text, err := io.ReadAll(a.stdin(ctx))
	if err != nil {
		return prompt{}, fmt.Errorf("reading the prompt: %w", err)
	}
	return prompt{text: strings.TrimSuffix(string(text), "\n")}, nil
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
		return nil, fmt.Errorf("reading token ids: %w", err)
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
	Stats      runStats      `json:"stats"`
}

type runStats struct {
	PromptTokens  int     `json:"prompt_tokens"`
	CachedTokens  int     `json:"cached_tokens"`
	PromptSeconds float64 `json:"prompt_seconds"`
	Tokens        int     `json:"tokens"`
	Seconds       float64 `json:"seconds"`
}

func (a *app) generate(ctx context.Context, model runtime.Engine, r runtime.Request, o runOptions, reader talk.Reader) error {
	result := runJSON{IDs: []int32{}}
	answer := a.answer(&result, o)
	for e, err := range model.Generate(ctx, r) {
		if err != nil {
			return err
		}
		result.IDs = append(result.IDs, e.IDs...)
		result.DoneReason = string(e.Done)
		s := e.Stats
		result.Stats = runStats{s.PromptTokens, s.CachedTokens, s.PromptTime.Seconds(), s.Tokens, s.GenerateTime.Seconds()}
		if err := answer.add(reader.Feed(e.Text)); err != nil {
			return err
		}
	}
	rest, damage := reader.Close()
	if err := answer.add(rest); err != nil {
		return err
	}
	if err := answer.end(); err != nil {
		return err
	}
	if damage != nil {
		a.note("the answer is shown as it is where it could not be read: %v", damage)
	}
	if o.verbose {
		s := result.Stats
		fmt.Fprintf(a.err, "\nprompt: %d tokens in %.2f s (%.1f tokens/s); generated: %d tokens in %.2f s (%.1f tokens/s)\n",
			s.PromptTokens, s.PromptSeconds, rate(s.PromptTokens-s.CachedTokens, s.PromptSeconds), s.Tokens, s.Seconds, rate(s.Tokens, s.Seconds))
	}
	if o.json {
		return a.printJSON(result)
	}
	return nil
}

func rate(n int, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return float64(n) / seconds
}
