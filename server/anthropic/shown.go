package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/wire"
)

// other adds the text of a block of which only the text is shown: a search result, or what tools that Anthropic runs
// left in the history of another model. One of another type has a note in its place, if it has no text.
func (b *builder) other(to *contents, x placed) error {
	kind := wire.Clip(x.Type)
	refuse := func(field string, why error) error { return b.omit(to, x.place, trouble{field, kind + " block", why}) }
	switch {
	case x.Type == "search_result":
		to.text("Search result: " + x.Title)
		if x.Source != nil && x.Source.text != "" {
			to.text("Source: " + x.Source.text)
		}
		for i, y := range blocksOf(x.Content) {
			if err := b.content(to, placed{y, x.within(i, true)}); err != nil {
				return err
			}
		}
		return nil
	case x.Type == "browser_state":
		to.text("Browser: " + compactJSON(x.all))
		return nil
	case x.Type == "container_upload":
		return refuse("file_id", errors.New("the server stores no files: send the content of the file"))
	case x.own || x.Type == toolUseBlock || x.Type == toolResultBlock:
		return refuse("type", fmt.Errorf("block type %q is not supported here", kind))
	case x.Type == "server_tool_use" || x.Type == "mcp_tool_use":
		b.names[x.ID] = x.Name
		to.text(fmt.Sprintf("[call of %s: %s]", wire.Clip(x.Name), compactJSON(x.Input)))
		return nil
	}
	name := b.names[x.ToolUseID]
	if name == "" {
		name = strings.TrimSuffix(kind, "_tool_result")
	}
	var inner contents
	if err := b.lines(&inner, x.all, x.place); err != nil {
		return err
	}
	if inner.empty() {
		return refuse("", errors.New("the server cannot show it"))
	}
	to.text(fmt.Sprintf("[%s]", name))
	to.add(inner)
	return nil
}

// compactJSON returns JSON on one line.
func compactJSON(raw json.RawMessage) string {
	var out bytes.Buffer
	if len(raw) == 0 || json.Compact(&out, raw) != nil {
		return "{}"
	}
	return out.String()
}

// result has the members of results that are text for people, of all types.
type result struct {
	Type       string            `json:"type"`
	Title      string            `json:"title"`
	URL        string            `json:"url"`
	Age        string            `json:"page_age"`
	Text       string            `json:"text"`
	Stdout     string            `json:"stdout"`
	Stderr     string            `json:"stderr"`
	ReturnCode *int              `json:"return_code"`
	Error      string            `json:"error_code"`
	FileID     string            `json:"file_id"`
	Encrypted  string            `json:"encrypted_stdout"`
	Lines      []string          `json:"lines"`
	References []json.RawMessage `json:"tool_references"`
	Content    json.RawMessage   `json:"content"`
}

// lines adds the texts in a block or its content, with its documents. The results of a search for tools offer these
// tools.
func (b *builder) lines(to *contents, raw json.RawMessage, p place) error {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || p.depth > maxDepth {
		return nil
	}
	switch raw[0] {
	case '"':
		var s string
		_ = json.Unmarshal(raw, &s) // the request is valid JSON
		to.line("%s", s)
	case '[':
		var list []json.RawMessage
		_ = json.Unmarshal(raw, &list)
		return b.each(to, list, p)
	case '{':
		var block contentBlock
		_ = block.UnmarshalJSON(raw) // returns no error
		switch block.Type {
		case documentBlock, imageBlock, referenceBlock:
			return b.content(to, placed{block, p.within(0, false)})
		}
		var r result
		_ = json.Unmarshal(raw, &r) // members of another type are left out
		return b.members(to, r, p)
	}
	return nil
}

// each adds the texts of a list.
func (b *builder) each(to *contents, list []json.RawMessage, p place) error {
	for i, x := range list {
		if err := b.lines(to, x, p.within(i, false)); err != nil {
			return err
		}
	}
	return nil
}

// members adds the members of a result.
func (b *builder) members(to *contents, r result, p place) error {
	to.line("%s", r.Title)
	to.line("%s", r.URL)
	to.line("(%s)", r.Age)
	to.line("%s", r.Text)
	to.line("%s", r.Stdout)
	to.line("%s", r.Stderr)
	to.line("%s", strings.Join(r.Lines, "\n"))
	if r.ReturnCode != nil && *r.ReturnCode != 0 {
		to.text(fmt.Sprintf("return code %d", *r.ReturnCode))
	}
	to.line("error: %s", r.Error)
	if r.FileID != "" {
		to.text(server.Omitted("file "+wire.Clip(r.FileID), "the server stores no files"))
	}
	if r.Encrypted != "" {
		to.text(server.Omitted("output", "it is encrypted"))
	}
	if err := b.each(to, r.References, p); err != nil {
		return err
	}
	return b.lines(to, r.Content, place{p.at, p.own, p.depth + 1})
}

// reference adds a reference to a tool, which is offered from then on.
func (b *builder) reference(to *contents, x placed) error {
	if !b.tools[x.ToolName] {
		why := fmt.Errorf("no tool is named %q", wire.Clip(x.ToolName))
		return b.omit(to, x.place, trouble{"tool_name", "tool_reference", why})
	}
	b.changes = append(b.changes, toolChange{name: x.ToolName})
	to.text(fmt.Sprintf("The tool %s can be called now.", x.ToolName))
	return nil
}

// compacted begins the conversation anew with a summary of what was before, as the API defines.
func (b *builder) compacted(to *contents, x placed) {
	var summary string
	_ = json.Unmarshal(x.Content, &summary) // null: the summary failed
	if summary == "" {
		return
	}
	kept := b.messages[:0:0]
	for _, m := range b.messages {
		if m.Role == "system" {
			kept = append(kept, m)
		}
	}
	b.messages, b.pictures, *to = kept, nil, contents{}
	to.text("Summary of the conversation so far:\n" + summary)
}
