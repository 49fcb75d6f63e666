package prompt

import (
	"slices"

	"github.com/ingotml/ingot/chat"
)

// inCallOrder prepares messages for the built-in template of DeepSeek V4: the results of tools, which are parts of a
// user's turn, are in the order of the calls that they name. The others come first.
func inCallOrder(messages []chat.Message) []chat.Message {
	out, order := slices.Clone(messages), map[string]int{}
	for i := 0; i < len(out); {
		if m := out[i]; m.Role != "user" && m.Role != "tool" {
			if len(m.ToolCalls) > 0 {
				clear(order)
			}
			for at, call := range m.ToolCalls {
				if call.ID != "" {
					order[call.ID] = at
				}
			}
			i++
			continue
		}
		var places []int
		var results []chat.Message
		for ; i < len(out) && (out[i].Role == "user" || out[i].Role == "tool"); i++ {
			if out[i].Role == "tool" {
				places, results = append(places, i), append(results, out[i])
			}
		}
		slices.SortStableFunc(results, func(a, b chat.Message) int { return order[a.ToolCallID] - order[b.ToolCallID] })
		for j, at := range places {
			out[at] = results[j]
		}
	}
	return out
}
