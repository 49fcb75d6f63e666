package interop

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// mcpArg makes the test program an MCP server with one tool, which clients start.
const mcpArg = "serve-mcp-notes"

// noteFound is what the tool returns. It depends on the arguments, which it gets as they were called.
const noteFound = "3 notes on greeting: the tide is out"

// serveMCP serves on standard input and output (https://modelcontextprotocol.io/specification, transport stdio).
func serveMCP(in io.Reader, out io.Writer) int {
	type object = map[string]any
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				ProtocolVersion string
				Arguments       struct {
					Query string
					Limit int
				}
			}
		}
		if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == nil {
			continue // a notification
		}
		reply := object{"jsonrpc": "2.0", "id": m.ID}
		switch m.Method {
		case "initialize":
			reply["result"] = object{"protocolVersion": m.Params.ProtocolVersion, "capabilities": object{"tools": object{}},
				"serverInfo": object{"name": "notes", "version": "1"}}
		case "ping":
			reply["result"] = object{}
		case "tools/list":
			reply["result"] = object{"tools": []object{{"name": "search", "description": "Search the notes.",
				"annotations": object{"readOnlyHint": true}, // no client has to ask before it calls the tool
				"inputSchema": object{"type": "object", "required": []string{"query"}, "properties": object{
					"query": object{"type": "string"}, "limit": object{"type": "integer"}}}}}}
		case "tools/call":
			text := fmt.Sprintf("%d notes on %s: the tide is out", m.Params.Arguments.Limit, m.Params.Arguments.Query)
			reply["result"] = object{"content": []object{{"type": "text", "text": text}}}
		default:
			reply["error"] = object{"code": -32601, "message": "unknown method " + m.Method}
		}
		b, err := json.Marshal(reply)
		if err != nil {
			return 1
		}
		if _, err := fmt.Fprintf(out, "%s\n", b); err != nil {
			return 1
		}
	}
	return 0
}
