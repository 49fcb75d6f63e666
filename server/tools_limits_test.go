package server_test

import (
	"strings"
	"testing"
)

// Tools that exceed the limits are a client error in each API.
func TestToolsLimits(t *testing.T) {
	f := serve(t, nil)
	function := `{"type":"function","function":{"name":"f","parameters":{}}}`
	many := "[" + strings.Repeat(function+",", 600) + function + "]"
	deep := `[{"type":"function","function":{"name":"f","parameters":` + strings.Repeat(`{"a":`, 200) + "1" +
		strings.Repeat("}", 200) + `}}]`
	messages := `"messages":[{"role":"user","content":"x"}],"stream":false,"max_tokens":1,`
	for tools, want := range map[string]string{many: "601 tools", deep: "nested more than"} {
		f.Has(t, "POST", "/api/chat", `{"model":"talk",`+messages+`"tools":`+tools+`}`, 400, want)
		f.Has(t, "POST", "/v1/chat/completions", `{"model":"talk",`+messages+`"tools":`+tools+`}`, 400, want)
	}
	anthropic := strings.ReplaceAll(many, function, `{"name":"f","input_schema":{"type":"object"}}`)
	f.Has(t, "POST", "/v1/messages", `{"model":"talk",`+messages+`"tools":`+anthropic+`}`, 400, "601 tools")
}
