package anthropic

import (
	"encoding/json"
	"errors"

	"github.com/ingotml/ingot/internal/limits/jsonfit"
)

type messageParam struct {
	Role    string        `json:"role"`
	Content contentBlocks `json:"content"`
}

// contentBlocks is a list of blocks, a block, or a string, which stands for one text block.
type contentBlocks []contentBlock

// contentBlock has the fields of all block types.
type contentBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Source    *blockSource    `json:"source"` // of images, documents and search results
	Title     string          `json:"title"`  // of documents and search results
	Context   string          `json:"context"`
	ID        string          `json:"id"` // of tool_use
	Name      string          `json:"name"`
	Toolset   string          `json:"toolset_name"`
	Server    string          `json:"server_name"` // of mcp_tool_use
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"` // of tool_result
	ToolName  string          `json:"tool_name"`   // of tool_reference
	Tool      json.RawMessage `json:"tool"`        // of tool_addition and tool_removal
	// contentBlocks, or an object of a type of its own; decoded only when used, so that nesting is not followed
	Content json.RawMessage `json:"content"`
	IsError bool            `json:"is_error"`

	CacheControl *cacheControl `json:"cache_control"` // a breakpoint after the block

	all    json.RawMessage // the block as it came, for types whose members are read when they are shown
	broken error           // why the block cannot be read: a member has the wrong type
}

// UnmarshalJSON reads a block. A text stands for a text block. A block that cannot be read is no error here: it must
// not end a conversation in whose history it is.
func (b *contentBlock) UnmarshalJSON(raw []byte) error {
	*b = contentBlock{}
	var text *string
	if jsonfit.Unmarshal(raw, &text) == nil && text != nil {
		b.Type, b.Text = textBlock, *text
		return nil
	}
	type fields contentBlock
	err := jsonfit.Unmarshal(raw, (*fields)(b))
	switch b.Type {
	case textBlock, imageBlock, documentBlock, thinkingBlock, toolUseBlock, toolResultBlock:
	default:
		b.all = append(json.RawMessage(nil), raw...)
	}
	switch {
	case len(raw) > 0 && raw[0] != '{':
		b.broken = errNoObject
	case err != nil:
		b.broken = err
	}
	if err == nil && b.Type == "" {
		b.broken = errors.New("the block has no type")
	}
	return nil
}

var errNoObject = errors.New("the block is no object")

// blockSource is where the data of an image or a document are.
type blockSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
	URL       string `json:"url"`
	FileID    string `json:"file_id"`

	Content json.RawMessage `json:"content"` // contentBlocks

	text string // of a search result, whose source is a text
}

// UnmarshalJSON reads an object, or the text of a search result's source.
func (s *blockSource) UnmarshalJSON(b []byte) error {
	*s = blockSource{}
	type fields blockSource
	if len(b) > 0 && b[0] == '"' {
		return jsonfit.Unmarshal(b, &s.text)
	}
	return jsonfit.Unmarshal(b, (*fields)(s))
}

// Block types that have code of their own. See shown.go for those of which only the text is shown.
const (
	textBlock       = "text"
	imageBlock      = "image"
	documentBlock   = "document"
	toolUseBlock    = "tool_use"
	toolResultBlock = "tool_result"
	thinkingBlock   = "thinking"
	redactedBlock   = "redacted_thinking"
	referenceBlock  = "tool_reference"
	toolSearchBlock = "tool_search_tool_result"
	additionBlock   = "tool_addition"
	removalBlock    = "tool_removal"
	compactionBlock = "compaction"
	fallbackBlock   = "fallback"
	mcpListingBlock = "mcp_tool_listing"
)

func (c *contentBlocks) UnmarshalJSON(b []byte) error {
	*c = nil
	switch {
	case string(b) == "null":
		return nil
	case len(b) > 0 && b[0] == '[':
		return jsonfit.Unmarshal(b, (*[]contentBlock)(c))
	}
	var one contentBlock
	_ = one.UnmarshalJSON(b) // returns no error
	if one.Type == "" {
		return jsonfit.Wrong(b, "a string, a block or an array of blocks")
	}
	*c = contentBlocks{one}
	return nil
}

// blocksOf decodes content that is kept as JSON. Content of another type is a block that cannot be read.
func blocksOf(raw json.RawMessage) (list contentBlocks) {
	if len(raw) == 0 {
		return nil
	}
	if err := jsonfit.Unmarshal(raw, &list); err != nil {
		return contentBlocks{{broken: err}}
	}
	return list
}
