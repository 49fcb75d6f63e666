package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
	"time"

	"github.com/ingotml/ingot/chat/jinja"
)

// goTemplate is a TEMPLATE text of a Modelfile. It sees .Messages, or turn by turn .System, .Prompt and .Response.
type goTemplate struct {
	t        *template.Template
	messages bool // reads .Messages
	suffix   bool // reads .Suffix
}

// Bounds of a Go template: iterations, and bytes of any text that it makes.
const (
	goSteps = 1_000_000
	goBytes = 16 << 20
)

// parseGo reads a Go template. Its loops and sub-templates get a step counter, since text/template has no limits of its own.
func parseGo(text string) (Template, error) {
	t, err := template.New("").Option("missingkey=zero").Funcs(goFuncs(context.Background(), jinja.Options{})).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrTemplate, err)
	}
	g := &goTemplate{t: t}
	fields := map[string]bool{}
	for _, sub := range t.Templates() {
		if sub.Tree == nil || sub.Root == nil {
			continue
		}
		visit(sub.Root, fields)
		if recursive(t, sub.Name(), map[string]bool{}) {
			return nil, fmt.Errorf("%w: %q calls itself, which has no use in a chat template", ErrTemplate, sub.Name())
		}
	}
	g.messages, g.suffix = fields["Messages"], fields["Suffix"]
	if !g.messages && !fields["Response"] {
		// A template that says nothing of the answer leaves it to the end.
		if _, err := t.Parse(text + "{{ .Response }}"); err != nil {
			return nil, fmt.Errorf("%w: %v", ErrTemplate, err)
		}
	}
	for _, sub := range t.Templates() {
		if sub.Tree != nil && sub.Root != nil {
			count(sub.Root)
			sub.Root.Nodes = append([]parse.Node{step()}, sub.Root.Nodes...)
		}
	}
	return g, nil
}

// recursive tells whether a template calls itself: text/template would go on to a depth of 100000.
func recursive(t *template.Template, name string, open map[string]bool) bool {
	sub := t.Lookup(name)
	if active, seen := open[name]; seen || sub == nil || sub.Tree == nil {
		return active
	}
	open[name] = true
	defer func() { open[name] = false }()
	var found bool
	var walk func(n parse.Node)
	walk = func(n parse.Node) {
		branch := func(b *parse.BranchNode) { walk(b.List); walk(b.ElseList) }
		switch n := n.(type) {
		case *parse.ListNode:
			for i := 0; n != nil && i < len(n.Nodes); i++ {
				walk(n.Nodes[i])
			}
		case *parse.TemplateNode:
			found = found || recursive(t, n.Name, open)
		case *parse.IfNode:
			branch(&n.BranchNode)
		case *parse.WithNode:
			branch(&n.BranchNode)
		case *parse.RangeNode:
			branch(&n.BranchNode)
		}
	}
	walk(sub.Root)
	return found
}

// step is a node that counts one step.
func step() parse.Node {
	trees, err := parse.Parse("", "{{ingotStep}}", "", "", map[string]any{"ingotStep": func() string { return "" }})
	if err != nil {
		return &parse.TextNode{NodeType: parse.NodeText}
	}
	return trees[""].Root.Nodes[0]
}

// count puts a step at the beginning of each loop's body.
func count(n parse.Node) {
	switch n := n.(type) {
	case *parse.ListNode:
		if n == nil {
			return
		}
		for _, c := range n.Nodes {
			count(c)
		}
	case *parse.IfNode:
		count(n.List)
		count(n.ElseList)
	case *parse.WithNode:
		count(n.List)
		count(n.ElseList)
	case *parse.RangeNode:
		count(n.List)
		count(n.ElseList)
		n.List.Nodes = append([]parse.Node{step()}, n.List.Nodes...)
	}
}

// visit notes the fields that a node reads.
func visit(n parse.Node, fields map[string]bool) {
	if n == nil || reflect.ValueOf(n).IsNil() {
		return
	}
	pipe := func(p *parse.PipeNode) {
		if p == nil {
			return
		}
		for _, c := range p.Cmds {
			visit(c, fields)
		}
	}
	branch := func(b *parse.BranchNode) {
		pipe(b.Pipe)
		visit(b.List, fields)
		visit(b.ElseList, fields)
	}
	switch n := n.(type) {
	case *parse.ListNode:
		for _, c := range n.Nodes {
			visit(c, fields)
		}
	case *parse.ActionNode:
		pipe(n.Pipe)
	case *parse.PipeNode:
		pipe(n)
	case *parse.CommandNode:
		for _, a := range n.Args {
			visit(a, fields)
		}
	case *parse.FieldNode:
		for _, f := range n.Ident {
			fields[f] = true
		}
	case *parse.VariableNode:
		for _, f := range n.Ident[1:] {
			fields[f] = true
		}
	case *parse.ChainNode:
		visit(n.Node, fields)
		for _, f := range n.Field {
			fields[f] = true
		}
	case *parse.TemplateNode:
		pipe(n.Pipe)
	case *parse.IfNode:
		branch(&n.BranchNode)
	case *parse.WithNode:
		branch(&n.BranchNode)
	case *parse.RangeNode:
		branch(&n.BranchNode)
	}
}

// cutResponse drops what comes after the first use of .Response: the model's own text goes there.
func cutResponse(list *parse.ListNode, cut bool) bool {
	if list == nil {
		return cut
	}
	var kept []parse.Node
	for _, n := range list.Nodes {
		if cut {
			break
		}
		switch n := n.(type) {
		case *parse.IfNode:
			cut = cutBranch(&n.BranchNode)
		case *parse.WithNode:
			cut = cutBranch(&n.BranchNode)
		case *parse.RangeNode:
			cut = cutBranch(&n.BranchNode)
		default:
			fields := map[string]bool{}
			visit(n, fields)
			cut = fields["Response"]
		}
		kept = append(kept, n)
	}
	list.Nodes = kept
	return cut
}

func cutBranch(b *parse.BranchNode) bool {
	fields := map[string]bool{}
	visit(b.Pipe, fields)
	cut := cutResponse(b.List, fields["Response"])
	return cutResponse(b.ElseList, cut) || cut
}

// errTooMuch is what stops a Go template.
var errTooMuch = fmt.Errorf("%w", jinja.ErrLimit)

// bounded collects output up to a limit.
type bounded struct {
	bytes.Buffer
	ctx   context.Context
	limit int64
}

func (b *bounded) Write(p []byte) (int, error) {
	if int64(b.Len()+len(p)) > b.limit {
		return 0, fmt.Errorf("%w: more than %d bytes of output", jinja.ErrLimit, b.limit)
	}
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	return b.Buffer.Write(p)
}

// execute runs a tree over data.
// goTexts are the variables that are texts: missing ones are empty, where text/template would print "<no value>".
var goTexts = []string{"System", "Prompt", "Response", "Suffix", "ThinkLevel"}

func (g *goTemplate) execute(ctx context.Context, w *bounded, o jinja.Options, data map[string]any, cut bool) error {
	for _, name := range goTexts {
		if _, given := data[name]; !given {
			data[name] = ""
		}
	}
	t, err := g.t.Clone()
	if err != nil {
		return fmt.Errorf("%w: %v", ErrTemplate, err)
	}
	if cut {
		tree := t.Tree.Copy()
		cutResponse(tree.Root, false)
		if t, err = t.AddParseTree(t.Name(), tree); err != nil {
			return fmt.Errorf("%w: %v", ErrTemplate, err)
		}
	}
	err = t.Funcs(goFuncs(ctx, o)).Execute(w, data)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, jinja.ErrLimit):
		return err
	}
	return fmt.Errorf("%w: %v", jinja.ErrRender, err)
}

func newBounded(ctx context.Context, o jinja.Options) *bounded {
	limit := o.Limits.Output
	if limit <= 0 {
		limit = goBytes
	}
	return &bounded{ctx: ctx, limit: limit}
}

func (g *goTemplate) RenderVars(ctx context.Context, vars *jinja.Dict, o jinja.Options) (string, error) {
	w := newBounded(ctx, o)
	data, _ := plain(vars).(map[string]any)
	err := g.execute(ctx, w, o, data, false)
	return w.String(), err
}

// plain makes Go's own kinds of values, for templates that walk them. Objects print as JSON.
func plain(v jinja.Value) any {
	switch v := v.(type) {
	case *jinja.Dict:
		m := map[string]any{}
		v.Each(func(k, x jinja.Value) bool {
			m[fmt.Sprint(k)] = plain(x)
			return true
		})
		return m
	case *jinja.List:
		list := make([]any, len(v.Items))
		for i, x := range v.Items {
			list[i] = plain(x)
		}
		return list
	}
	return v
}

// Render follows the rules of the runtime that these templates were written for: system messages are joined, messages of one
// role in a row become one, and a template without .Messages runs once for each exchange.
func (g *goTemplate) Render(ctx context.Context, r Request) (string, error) {
	w := newBounded(ctx, r.Options)
	messages, system := collate(r.Messages)
	data := map[string]any{"Response": "", "IsThinkSet": r.Think != nil || r.ThinkLevel != "", "ThinkLevel": r.ThinkLevel,
		"Think": r.Think != nil && *r.Think || r.ThinkLevel != ""}
	if r.Extra != nil {
		r.Extra.Each(func(k, v jinja.Value) bool { data[fmt.Sprint(k)] = plain(v); return true })
	}
	if g.suffix && r.Suffix != "" && len(messages) > 0 {
		data["Prompt"], data["Suffix"] = messages[len(messages)-1].Content, r.Suffix
		err := g.execute(ctx, w, r.Options, data, false)
		return w.String(), err
	}
	if g.messages {
		data["System"], data["Messages"] = system, messages
		if tools := goTools(r.Tools); tools != nil {
			data["Tools"] = tools
		}
		err := g.execute(ctx, w, r.Options, data, false)
		return w.String(), err
	}
	var turn struct{ system, prompt, response string }
	flush := func(cut bool) error {
		data["System"], data["Prompt"], data["Response"] = turn.system, turn.prompt, turn.response
		turn.system, turn.prompt, turn.response = "", "", ""
		return g.execute(ctx, w, r.Options, data, cut)
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
			if turn.response != "" {
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
	// What follows the answer is the model's to write; an unfinished answer is continued.
	response := turn.response
	turn.response = ""
	if err := flush(true); err != nil {
		return "", err
	}
	if _, err := w.Write([]byte(response)); err != nil {
		return "", err
	}
	return w.String(), nil
}

// goMessage is a message as Go templates see it.
type goMessage struct {
	Role, Content, Thinking, ToolName, ToolCallID string
	ToolCalls                                     []goToolCall
	Images                                        []any
}

type goToolCall struct {
	ID       string
	Function goCall
}

type goCall struct {
	Index     int
	Name      string
	Arguments goObject
}

// goObject is an object that a template may walk, and that prints as JSON.
type goObject map[string]any

func (o goObject) String() string {
	b, err := json.Marshal(map[string]any(o))
	if err != nil {
		return "{}"
	}
	return string(b)
}

func collate(in []Message) (out []*goMessage, system string) {
	var systems []string
	for _, m := range in {
		if m.Role == "system" {
			systems = append(systems, m.Content)
		}
		if n := len(out); n > 0 && out[n-1].Role == m.Role && m.Role != "tool" {
			if out[n-1].Content != "" && m.Content != "" {
				out[n-1].Content += "\n\n"
			}
			out[n-1].Content += m.Content
			out[n-1].ToolCalls = append(out[n-1].ToolCalls, goCalls(m.ToolCalls)...)
			continue
		}
		out = append(out, &goMessage{Role: m.Role, Content: m.Content, Thinking: m.Reasoning, ToolName: m.Name,
			ToolCallID: m.ToolCallID, ToolCalls: goCalls(m.ToolCalls)})
	}
	return out, strings.Join(systems, "\n\n")
}

func goCalls(in []ToolCall) []goToolCall {
	var out []goToolCall
	for i, c := range in {
		args, _ := plain(c.Arguments).(map[string]any)
		out = append(out, goToolCall{c.ID, goCall{i, c.Name, args}})
	}
	return out
}

// goTool is a tool as Go templates see it; it prints as JSON with the keys in their order.
type goTool struct {
	Type     string
	Function goFunction
	value    *jinja.Dict
}

type goFunction struct {
	Name, Description string
	Parameters        goParameters
	value             jinja.Value
}

type goParameters struct {
	Type       string
	Required   []string
	Properties map[string]any
	value      jinja.Value
}

func (t goTool) String() string       { return object(t.value) }
func (f goFunction) String() string   { return object(f.value) }
func (p goParameters) String() string { return object(p.value) }

// MarshalJSON serves the function json.
func (t goTool) MarshalJSON() ([]byte, error)       { return []byte(t.String()), nil }
func (f goFunction) MarshalJSON() ([]byte, error)   { return []byte(f.String()), nil }
func (p goParameters) MarshalJSON() ([]byte, error) { return []byte(p.String()), nil }

func object(v jinja.Value) string {
	if v == nil {
		return "{}"
	}
	s, err := jinja.EncodeJSON(v)
	if err != nil {
		return "{}"
	}
	var b bytes.Buffer
	if json.Compact(&b, []byte(s)) != nil {
		return s
	}
	return b.String()
}

func goTools(tools []Tool) []goTool {
	var out []goTool
	for _, t := range tools {
		g := goTool{Type: field(t.Value, "type"), value: t.Value}
		fv, _ := t.Value.Get("function")
		if f, ok := fv.(*jinja.Dict); ok {
			g.Function = goFunction{Name: field(f, "name"), Description: field(f, "description"), value: f}
			pv, _ := f.Get("parameters")
			if p, ok := pv.(*jinja.Dict); ok {
				g.Function.Parameters = goParameters{Type: field(p, "type"), value: p}
				props, _ := p.Get("properties")
				g.Function.Parameters.Properties, _ = plain(props).(map[string]any)
				required, _ := p.Get("required")
				list, _ := plain(required).([]any)
				for _, x := range list {
					g.Function.Parameters.Required = append(g.Function.Parameters.Required, fmt.Sprint(x))
				}
			}
		}
		out = append(out, g)
	}
	return out
}

// typeScript is a JSON schema's type in TypeScript's words.
func typeScript(schema any) string {
	m, ok := schema.(map[string]any)
	if !ok {
		return "any"
	}
	if list, ok := m["anyOf"].([]any); ok && len(list) > 0 {
		var parts []string
		for _, x := range list {
			parts = append(parts, typeScript(x))
		}
		return strings.Join(parts, " | ")
	}
	one := func(t string) string {
		switch t {
		case "string", "boolean", "null":
			return t
		case "integer", "number":
			return "number"
		case "array":
			return typeScriptItems(m["items"]) + "[]"
		case "object":
			return "Record<string, any>"
		}
		return "any"
	}
	switch t := m["type"].(type) {
	case string:
		return one(t)
	case []any:
		var parts []string
		for _, x := range t {
			parts = append(parts, one(fmt.Sprint(x)))
		}
		if len(parts) > 0 {
			return strings.Join(parts, " | ")
		}
	}
	return "any"
}

func typeScriptItems(items any) string {
	if t := typeScript(items); !strings.Contains(t, " ") {
		return t
	}
	return "any"
}

// goFuncs are the functions of Go templates, with those of text/template that make texts bounded.
func goFuncs(ctx context.Context, o jinja.Options) template.FuncMap {
	now := o.Now
	if now == nil {
		now = time.Now
	}
	steps, made := 0, 0
	text := func(s string, size int) (string, error) {
		if made += size; made > goBytes {
			return "", fmt.Errorf("%w: more than %d bytes of text", errTooMuch, goBytes)
		}
		return s, ctx.Err()
	}
	size := func(args []any) int {
		n := 64
		for _, a := range args {
			switch a := a.(type) {
			case string:
				n += len(a)
			default:
				n += 64
			}
		}
		return n
	}
	return template.FuncMap{
		"ingotStep": func() (string, error) {
			if steps++; steps > goSteps {
				return "", fmt.Errorf("%w: more than %d steps", errTooMuch, goSteps)
			}
			return "", ctx.Err()
		},
		"json": func(v any) (string, error) {
			b, err := json.Marshal(v)
			if err != nil {
				return "", err
			}
			return text(string(b), len(b))
		},
		"currentDate":      func(...string) string { return now().Format("2006-01-02") },
		"toTypeScriptType": typeScript,
		"yesterdayDate":    func(...string) string { return now().AddDate(0, 0, -1).Format("2006-01-02") },
		"printf": func(format string, args ...any) (string, error) {
			if slices.ContainsFunc(strings.Split(format, "%")[1:], func(s string) bool {
				return len(strings.TrimLeft(s, "+-# 0123456789.*[]")) < len(s)-6
			}) {
				return "", fmt.Errorf("%w: width in a format", errTooMuch)
			}
			if _, err := text("", len(format)+size(args)); err != nil {
				return "", err
			}
			s := fmt.Sprintf(format, args...)
			return text(s, len(s))
		},
		"print": func(args ...any) (string, error) {
			if _, err := text("", size(args)); err != nil {
				return "", err
			}
			s := fmt.Sprint(args...)
			return text(s, len(s))
		},
		"println": func(args ...any) (string, error) {
			if _, err := text("", size(args)); err != nil {
				return "", err
			}
			s := fmt.Sprintln(args...)
			return text(s, len(s))
		},
	}
}
