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

	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server"
	"github.com/spf13/cobra"
)

func (a *app) runCmd() *cobra.Command {
	var o runOptions
	c := &cobra.Command{
		Use:   "run NAME [PROMPT]",
		Short: "Talk with a model, or let it continue a prompt",
		Long: `Talk with a model on a terminal, or have it answer a prompt that is an argument, standard input (which comes first where both
are given), or token ids. What flags leave open, the image's parameters decide. A model without a tokenizer answers with token ids, too.

Where the model has a chat template, the prompt is the user's turn of a conversation that begins with the image's own
system text and messages. The answer goes to standard output, calls of tools as lines of JSON; what the model thinks goes
to standard error, on a terminal or with --verbose. --raw gives prompt and answer as they are.

Without a prompt, on a terminal, there is a conversation: /? lists its commands, Ctrl-C stops an answer, Ctrl-D leaves. What was
said is kept for the keys Up and Down of later ones.

Models that see are shown the pictures whose paths are in a prompt given as an argument: words with a slash that end in
.png, .jpg, .jpeg, .gif, .webp or .bmp, in quotes or with \ before spaces where they have some. They come before the text,
in their order, and their paths are taken out of it. A path that leads to no file stays text.

A server at $INGOT_HOST with the same store is asked for the answer; where there is none, and with --local, --float32, --prompt-ids,
--threads or --cpu-math, the model is loaded in this process.`,
		Example: `  ingot run mymodel
  ingot run mymodel "Once upon a time"
  ingot run mymodel "Summarise this text." < text
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
	f.BoolVar(&o.float32, "float32", false, "compute in float32, in this process")
	f.StringVar(&o.draft, "draft", "auto", "tokens to draft in each step, which the model judges in one go: a number, auto or off; answers stay the same")
	o.key.add(c, "server's API key")
	f.BoolVar(&o.local, "local", false, "load the model in this process, although a server may have it")
	o.kv.add(c)
	o.cpu.add(c)
	f.BoolVar(&o.json, "json", false, "print one JSON object at the end, no text before")
	f.BoolVar(&o.verbose, "verbose", false, "print statistics to standard error")
	return c
}

type runOptions struct {
	raw, local         bool
	system, think      string
	promptIDs, format  string
	sampling           runtime.Sampling
	seed               int64
	maxTokens          int
	stop               []string
	ignoreEOS, float32 bool
	json, verbose      bool
	draft              string
	key                keyFlag
	kv                 kvFlag
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
	if _, err := o.kv.value(); err != nil {
		return err
	}
	format, err := readFormat(ctx, o.format)
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
		return errors.New("the prompt is empty") // before a tokenizer adds its own
	}
	store, entry, err := resolve(c, args[0])
	if err != nil {
		return err
	}
	style, err := openStyle(store, entry)
	if err != nil {
		return err
	}
	if !o.raw && prompt.ids == nil {
		if err := o.readTemplate(c, store, entry, style); err != nil {
			return err
		}
	}
	pictures, err := readPictures(prompt.pictures)
	if err != nil {
		return err
	}
	voices := a.voices(c, store, o)
	defer voices.close()
	voice, err := voices.open(ctx, entry, style)
	if err != nil {
		return err
	}
	defer voice.close()
	o.idsOnly = voice.idsOnly()
	q := o.question(c, style, prompt, pictures)
	q.format = format
	result := newRunJSON()
	if err := a.hear(voice.answer(ctx, q), a.answer(&result, o), o); err != nil {
		return err
	}
	if o.json {
		return a.printJSON(result)
	}
	return nil
}

// request puts flags over the image's defaults.
func (o runOptions) request(d runtime.Defaults) runtime.Request {
	r := runtime.Request{Sampling: d.Sampling, MaxTokens: d.MaxTokens, Stop: d.Stop, IgnoreEOS: o.ignoreEOS}
	r.Draft, _ = runtime.ParseDraft(o.draft) // that was looked at first
	return r
}

// parameters are those that flags set, by the names of a Modelfile.
func (o runOptions) parameters(c *cobra.Command) map[string]any {
	set := map[string]any{}
	for _, p := range []struct {
		flag, name string
		value      any
	}{
		{"temperature", "temperature", o.sampling.Temperature},
		{"top-k", "top_k", o.sampling.TopK},
		{"top-p", "top_p", o.sampling.TopP},
		{"min-p", "min_p", o.sampling.MinP},
		{"seed", "seed", o.seed},
		{"max-tokens", "num_predict", o.maxTokens},
		{"stop", "stop", o.stop},
	} {
		if c.Flags().Changed(p.flag) {
			set[p.name] = p.value
		}
	}
	return set
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
	var p prompt
	if len(args) > 0 {
		var missing []string
		p.text, p.pictures, missing = takePictures(args[0])
		for _, path := range missing {
			a.note("there is no file %s: the path is a part of the text", path)
		}
	}
	if isTerminal(a.in) {
		if len(args) == 0 {
			return p, usagef("no prompt: give one as an argument or on standard input")
		}
		return p, nil
	}
	text, err := io.ReadAll(a.stdin(ctx))
	if err != nil {
		return p, fmt.Errorf("reading the prompt: %w", err)
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
	Stats      server.Stats  `json:"stats"`
}

func newRunJSON() runJSON { return runJSON{IDs: []int32{}} }

// hear takes an answer as it comes.
func (a *app) hear(pieces iter.Seq2[said, error], w *answer, o runOptions) error {
	var damage error
	for s, err := range pieces {
		if err != nil {
			return err
		}
		w.result.IDs = append(w.result.IDs, s.ids...)
		w.result.DoneReason, w.result.Stats = s.done, s.stats
		if s.damage != nil {
			damage = s.damage
		}
		if err := w.add(s.events); err != nil {
			return err
		}
	}
	if err := w.end(); err != nil {
		return err
	}
	if damage != nil {
		a.note("the answer is shown as it is where it could not be read: %v", damage)
	}
	if o.verbose {
		fmt.Fprintf(a.err, "\n%s\n", statsText(w.result.Stats))
	}
	return nil
}

// statsText says what an answer took.
func statsText(s server.Stats) string {
	cached := ""
	if s.CachedTokens > 0 {
		cached = fmt.Sprintf(", %d of them cached,", s.CachedTokens)
	}
	text := fmt.Sprintf("prompt: %d tokens%s in %.2f s (%.1f tokens/s); generated: %d tokens in %.2f s (%.1f tokens/s)",
		s.PromptTokens, cached, s.PromptSeconds, rate(s.PromptTokens-s.CachedTokens, s.PromptSeconds), s.Tokens, s.Seconds, rate(s.Tokens, s.Seconds))
	if s.Drafted > 0 {
		text += fmt.Sprintf("\ndrafts: %d tokens, %d of them accepted; steps of the model: %d", s.Drafted, s.Accepted, s.TargetSteps)
	}
	return text
}

func rate(n int, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return float64(n) / seconds
}
