package openai

import (
	"encoding/json"

	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/openai/items"
	"github.com/ingotml/ingot/server/openai/tools"
)

// Items that come whole: calls and summaries.

// call adds a complete call.
func (a *responsesWriter) call(c parse.ToolCall) error {
	if err := a.close(); err != nil {
		return err
	}
	a.pending = nil
	call := a.exchange.tools.Call(c)
	item := outputItem{Status: statusInProgress, CallID: server.CallID(c), Namespace: call.Namespace, Name: call.Name}
	var between []responseEvent
	whole := item
	switch call.Kind {
	case tools.Custom:
		item.ID, item.Type, item.Input = server.NewID("ctc_"), "custom_tool_call", new("")
		whole = item
		whole.Input = &call.Input
		between = []responseEvent{
			{Type: "response.custom_tool_call_input.delta", Delta: &call.Input},
			{Type: "response.custom_tool_call_input.done", Input: &call.Input},
		}
	case tools.Search:
		item.ID, item.Type, item.Execution, item.Name = server.NewID("tsc_"), "tool_search_call", "client", ""
		item.Arguments = call.Arguments
		whole = item
	default:
		arguments := string(call.Arguments)
		item.ID, item.Type, item.Arguments = server.NewID("fc_"), "function_call", json.RawMessage(`""`)
		whole = item
		text, err := json.Marshal(arguments)
		if err != nil {
			return err
		}
		whole.Arguments = text
		between = []responseEvent{
			{Type: "response.function_call_arguments.delta", Delta: &arguments},
			{Type: "response.function_call_arguments.done", Name: call.Name, Arguments: &arguments},
		}
	}
	return a.sendWhole(item, whole, between...)
}

// sendWhole adds an item as it begins, sends events about it, and completes it.
func (a *responsesWriter) sendWhole(begun, whole outputItem, between ...responseEvent) error {
	a.response.Output = append(a.response.Output, begun)
	if err := a.sendItem(responseEvent{Type: "response.output_item.added", Item: &begun}); err != nil {
		return err
	}
	for _, e := range between {
		if err := a.sendItem(e); err != nil {
			return err
		}
	}
	if begun.Status != "" {
		whole.Status = statusCompleted
	}
	a.response.Output[len(a.response.Output)-1] = whole
	return a.sendItem(responseEvent{Type: "response.output_item.done", Item: &whole})
}

// summary adds the summary that the request asks for.
func (a *responsesWriter) summary() error {
	item := summaryItem(a.text.String())
	return a.sendWhole(item, item)
}

// summaryItem returns the item of a summary. Clients send it back in place of what it sums up.
func summaryItem(text string) outputItem {
	return outputItem{ID: server.NewID("cmp_"), Type: "compaction", Encrypted: items.Summary.Seal(text)}
}
