package items

import (
	"fmt"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/server/openai/tools"
)

// Calls of tools without a schema: OpenAI runs them, or tells the client what to run.

// action adds a call whose arguments are in one member.
func (r *reader) action(it Item) error {
	arguments := it.rest()
	for _, key := range []string{"action", "operation"} {
		if v, _ := it.Get(key); v != nil {
			if d, ok := v.(*jinja.Dict); ok {
				arguments = d
			}
		}
	}
	r.call(it, it.text("call_id"), strings.TrimSuffix(it.text("type"), "_call"), arguments)
	return nil
}

// screenshot adds the result of an action on a screen.
func (r *reader) screenshot(it Item) error {
	v, _ := it.Get("output")
	picture, _ := v.(*jinja.Dict)
	r.add(it, chat.Message{Role: roleTool, ToolCallID: it.text("call_id"),
		Parts: []chat.Part{image(text(picture, "image_url"))}})
	return nil
}

// image returns a part with a picture.
func image(url string) chat.Part {
	d := jinja.NewDict()
	d.Put("type", "input_image")
	d.Put("image_url", url)
	return chat.Part{Type: "input_image", Fields: d}
}

// shellOutput adds what commands wrote.
func (r *reader) shellOutput(it Item) error {
	list := it.list("output")
	if list == nil {
		return r.output(it)
	}
	var b strings.Builder
	for _, v := range list {
		one, _ := v.(*jinja.Dict)
		b.WriteString(text(one, "stdout") + text(one, "stderr"))
		v, _ := one.Get("outcome")
		switch outcome, _ := v.(*jinja.Dict); text(outcome, "type") {
		case "timeout":
			b.WriteString("\n(timed out)\n")
		case "exit":
			if code, _ := outcome.Get("exit_code"); fmt.Sprint(code) != "0" {
				fmt.Fprintf(&b, "\n(exit status %v)\n", code)
			}
		}
	}
	r.add(it, chat.Message{Role: roleTool, ToolCallID: it.text("call_id"), Content: b.String()})
	return nil
}

// ran adds a call that OpenAI ran, and its result.
func (r *reader) ran(it Item, name string, arguments jinja.Value, result chat.Message) {
	r.call(it, it.text("id"), name, arguments)
	result.Role, result.ToolCallID = roleTool, it.text("id")
	r.add(it, result)
}

// pair returns a dict with one member.
func pair(key string, v jinja.Value) *jinja.Dict {
	d := jinja.NewDict()
	d.Put(key, v)
	return d
}

// fileSearch adds a search, if its results are known.
func (r *reader) fileSearch(it Item) error {
	var found []string
	for _, v := range it.list("results") {
		one, _ := v.(*jinja.Dict)
		found = append(found, text(one, "filename")+":\n"+text(one, "text"))
	}
	if len(found) > 0 {
		queries, _ := it.Get("queries")
		r.ran(it, "file_search", pair("queries", queries), chat.Message{Content: strings.Join(found, "\n\n")})
	}
	return nil
}

// interpreter adds code that OpenAI ran.
func (r *reader) interpreter(it Item) error {
	if it.text("code") == "" {
		return nil
	}
	parts := []chat.Part{}
	for _, v := range it.list("outputs") {
		one, _ := v.(*jinja.Dict)
		if text(one, "type") == "image" {
			parts = append(parts, image(text(one, "url")))
			continue
		}
		parts = append(parts, chat.Part{Type: "text", Text: text(one, "logs")})
	}
	r.ran(it, "code_interpreter", pair("code", it.text("code")), chat.Message{Parts: parts})
	return nil
}

// generation adds a picture that OpenAI made.
func (r *reader) generation(it Item) error {
	data := it.text("result")
	if data == "" {
		return nil
	}
	if !strings.HasPrefix(data, "data:") {
		data = "data:image;base64," + data
	}
	r.ran(it, "image_generation", pair("prompt", it.text("revised_prompt")), chat.Message{Parts: []chat.Part{image(data)}})
	return nil
}

// mcp adds a call of an MCP server that OpenAI called.
func (r *reader) mcp(it Item) error {
	result := it.text("output")
	if problem, _ := it.Get("error"); problem != nil && result == "" {
		result = "error: " + plain(problem)
	}
	arguments, _ := it.Get("arguments")
	r.ran(it, tools.Joined(it.text("server_label"), it.text("name")), arguments, chat.Message{Content: result})
	return nil
}

// plain returns a text as it is, and another value as JSON.
func plain(v jinja.Value) string {
	if s, ok := v.(string); ok {
		return s
	}
	s, err := jinja.EncodeJSON(v)
	if err != nil {
		return ""
	}
	return s
}

// program adds a program with which the model called tools.
func (r *reader) program(it Item) error {
	r.call(it, it.text("call_id"), "program", pair("code", it.text("code")))
	return nil
}

func (r *reader) programOutput(it Item) error { return r.result(it, "result") }

// search adds a search for tools, if the client ran it.
func (r *reader) search(it Item) error {
	if id := it.text("call_id"); id != "" && it.text("execution") != "server" {
		arguments, _ := it.Get("arguments")
		r.call(it, id, r.set.OfferedName("", string(tools.Search)), arguments)
	}
	return nil
}

// searchOutput adds the names of the tools that a search found. The tools themselves are offered with the others.
func (r *reader) searchOutput(it Item) error {
	if it.text("call_id") == "" || it.text("execution") == "server" {
		return nil
	}
	var names []string
	for _, v := range it.list("tools") {
		one, _ := v.(*jinja.Dict)
		name := text(one, "name")
		inner, _ := one.Get("tools")
		list, ok := inner.(*jinja.List)
		if !ok {
			names = append(names, r.set.OfferedName("", name))
			continue
		}
		for _, v := range list.Items {
			tool, _ := v.(*jinja.Dict)
			names = append(names, r.set.OfferedName(name, text(tool, "name")))
		}
	}
	found := "No tools were found."
	if len(names) > 0 {
		found = "These tools can be called now: " + strings.Join(names, ", ")
	}
	r.add(it, chat.Message{Role: roleTool, ToolCallID: it.text("call_id"), Content: found})
	return nil
}
