package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/template"
	"text/template/parse"
	"time"

	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/internal/limits/work"
)

// goTemplate is the TEMPLATE of a Modelfile. It reads either .Messages, or .System, .Prompt and .Response of one
// exchange.
type goTemplate struct {
	t        *template.Template
	cut      *template.Template // ends where the response goes; nil if t reads .Messages
	messages bool               // reads .Messages
	suffix   bool               // reads .Suffix
}

// parseGo parses a Go template and inserts step counters, because text/template has no limits of its own.
func parseGo(ctx context.Context, text string) (Template, error) {
	if err := scan(text); err != nil {
		return nil, err
	}
	t, err := template.New("").Option("missingkey=zero").Funcs((&goRun{}).functions()).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrTemplate, err)
	}
	trees, err := analyze(ctx, t)
	if err != nil {
		return nil, err
	}
	fields := map[string]bool{}
	for _, tree := range trees {
		readFields(tree.root, fields)
	}
	g := &goTemplate{t: t, messages: fields["Messages"], suffix: fields["Suffix"]}
	if !g.messages && !fields["Response"] {
		// In a template without .Response, the response goes at the end.
		if _, err := t.Parse(text + "{{ .Response }}"); err != nil {
			return nil, fmt.Errorf("%w: %v", ErrTemplate, err)
		}
	}
	var cut *parse.Tree
	if !g.messages && t.Tree != nil {
		cut = t.Tree.Copy()
		cutResponse(cut.Root, false)
		if err := count(cut.Root); err != nil {
			return nil, err
		}
	}
	for _, sub := range t.Templates() {
		if sub.Tree == nil || sub.Root == nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := count(sub.Root); err != nil {
			return nil, err
		}
	}
	if cut != nil {
		if g.cut, err = t.Clone(); err == nil {
			_, err = g.cut.AddParseTree(t.Name(), cut)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %v", ErrTemplate, err)
		}
	}
	return g, nil
}

// goRun is the state of one render: its limits, resource counters and output.
type goRun struct {
	ctx    context.Context
	meter  *work.Meter
	g      *goTemplate
	t      *template.Template
	now    func() time.Time
	limits jinja.Limits
	steps  int64
	looked int64 // value of steps at the last look at the context
	memory int64
	out    strings.Builder
	err    error // the limit that was exceeded
}

// start begins a render with the limits for these variables. The caller ends it with meter.Done.
func (g *goTemplate) start(ctx context.Context, vars *jinja.Dict, o jinja.Options) (*goRun, error) {
	t, err := g.t.Clone() // the functions belong to the run; the trees are shared
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrTemplate, err)
	}
	run := &goRun{ctx: ctx, g: g, t: t, now: o.Now, limits: o.Limits.WithDefaults(jinja.Size(vars))}
	run.meter = work.Start(ctx, work.Limits{Time: run.limits.Time})
	t.Funcs(run.functions())
	return run, nil
}

// step counts nodes that are about to run.
func (g *goRun) step(n int) error {
	return g.work(callWeight + nodeWeight*int64(n))
}

func (g *goRun) check() error {
	if g.steps > g.limits.Steps {
		return g.fail("more than %d steps", g.limits.Steps)
	}
	if g.steps-g.looked < 1000 && g.looked > 0 {
		return nil
	}
	g.looked = g.steps
	err := g.meter.Look()
	if errors.Is(err, work.ErrLimit) {
		return g.fail("%v", err)
	}
	return err
}

// work counts steps of an operation that takes so long.
func (g *goRun) work(steps int64) error {
	g.steps += steps
	return g.check()
}

// fail records the limit that ends the run, because text/template wraps the error in a message of its own.
func (g *goRun) fail(format string, args ...any) error {
	g.err = fmt.Errorf("%w: %s", jinja.ErrLimit, fmt.Sprintf(format, args...))
	return g.err
}

// Write implements io.Writer for the template's output.
func (g *goRun) Write(p []byte) (int, error) {
	if err := g.room(len(p)); err != nil {
		return 0, err
	}
	return g.out.Write(p)
}

// WriteString implements io.StringWriter.
func (g *goRun) WriteString(s string) (int, error) {
	if err := g.room(len(s)); err != nil {
		return 0, err
	}
	return g.out.WriteString(s)
}

func (g *goRun) room(n int) error {
	if int64(g.out.Len()+n) > g.limits.Output {
		return g.fail("more than %d bytes of output", g.limits.Output)
	}
	return g.work(int64(n) / 256)
}

// finish returns the output, or err if the render failed.
func (g *goRun) finish(err error) (string, error) {
	if err != nil {
		return "", err
	}
	return g.out.String(), nil
}

// goStrings are the string variables. execute sets missing ones to "", because text/template would print "<no value>".
var goStrings = []string{"System", "Prompt", "Response", "Suffix", "ThinkLevel"}

// execute runs the template with data. With cut, it stops where the response goes.
func (g *goRun) execute(data map[string]any, cut bool) error {
	for _, name := range goStrings {
		if _, given := data[name]; !given {
			data[name] = ""
		}
	}
	t := g.t
	if cut && g.g.cut != nil {
		var err error
		if t, err = g.g.cut.Clone(); err != nil {
			return fmt.Errorf("%w: %v", ErrTemplate, err)
		}
		t.Funcs(g.functions())
	}
	err := t.Execute(g, data)
	switch {
	case err == nil:
		return nil
	case g.ctx.Err() != nil:
		return g.ctx.Err()
	case g.err != nil:
		return g.err
	}
	return fmt.Errorf("%w: %s", jinja.ErrRender, uncounted.Replace(err.Error()))
}

func (g *goTemplate) RenderVars(ctx context.Context, vars *jinja.Dict, o jinja.Options) (string, error) {
	run, err := g.start(ctx, vars, o)
	if err != nil {
		return "", err
	}
	defer run.meter.Done()
	data, _ := plain(vars).(map[string]any)
	if data == nil {
		data = map[string]any{}
	}
	return run.finish(run.execute(data, false))
}

// Render follows Ollama's rules, for which these templates are written: system messages are joined, adjacent messages
// of one role are merged, and a template without .Messages runs once for each exchange.
func (g *goTemplate) Render(ctx context.Context, r Request) (string, error) {
	run, err := g.start(ctx, r.Vars(), r.Options)
	if err != nil {
		return "", err
	}
	defer run.meter.Done()
	messages, system := collate(r.Messages)
	data := map[string]any{
		"Response":   "",
		"IsThinkSet": r.Think != nil || r.ThinkLevel != "",
		"Think":      r.Think != nil && *r.Think || r.ThinkLevel != "",
		"ThinkLevel": r.ThinkLevel,
	}
	if r.Extra != nil {
		r.Extra.Each(func(k, v jinja.Value) bool { data[fmt.Sprint(k)] = plain(v); return true })
	}
	if g.suffix && r.Suffix != "" && len(messages) > 0 {
		data["Prompt"], data["Suffix"] = messages[len(messages)-1].Content, r.Suffix
		return run.finish(run.execute(data, false))
	}
	if g.messages {
		data["System"], data["Messages"] = system, messages
		if tools := goTools(r.Tools); tools != nil {
			data["Tools"] = tools
		}
		return run.finish(run.execute(data, false))
	}
	var turn struct{ system, prompt, response string }
	flush := func(cut bool) error {
		data["System"], data["Prompt"], data["Response"] = turn.system, turn.prompt, turn.response
		turn.system, turn.prompt, turn.response = "", "", ""
		return run.execute(data, cut)
	}
	for _, m := range messages {
		var err error
		switch m.Role {
		case "system":
			if turn.prompt != "" || turn.response != "" {
				err = flush(false)
			}
			turn.system = m.Content
		case "user":
			if turn.response != "" || turn.prompt != "" { // an empty answer was between two user turns
				err = flush(false)
			}
			turn.prompt = m.Content
		case "assistant":
			turn.response = m.Content
		}
		if err != nil {
			return "", err
		}
	}
	// The model writes everything after the response itself. It continues an unfinished response.
	response := turn.response
	turn.response = ""
	if err := flush(true); err != nil {
		return "", err
	}
	_, err = run.WriteString(response)
	return run.finish(err)
}
