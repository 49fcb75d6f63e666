package parse

import (
	"encoding/json"
	"fmt"
	"github.com/ingotml/ingot/chat/parse/calls"
	"strings"
	"testing"
)

// Definitions that refer to each other many times are resolved once each.
func TestHostileDefinitions(t *testing.T) {
	const ref = `{"$ref":"#/$defs/a"},`
	circle := `{"$defs":{"a":{"anyOf":[` + strings.Repeat(ref, 100) + `{"type":"integer"}]}},"properties":{` +
		strings.Repeat(`"p":{"$ref":"#/$defs/a"},`, 1000) + `"q":{"$ref":"#/$defs/a"}}}`
	var doubling strings.Builder
	for i := range 30 {
		fmt.Fprintf(&doubling, `"a%d":{"anyOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%[2]d"}]},`, i, i+1)
	}
	for name, schema := range map[string]string{
		"circle":   circle,
		"doubling": `{"$defs":{` + doubling.String() + `"a30":{"type":"integer"}},"properties":{"q":{"$ref":"#/$defs/a0"}}}`,
	} {
		got := newTools([]calls.Tool{{Name: "f", Parameters: json.RawMessage(schema)}})["f"].types["q"]
		if len(got) != 1 || got[0] != "integer" {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// CallGrammar refuses tools whose grammar would exceed the limit.
func TestLargeCallGrammar(t *testing.T) {
	var names strings.Builder
	for i := range 500 {
		fmt.Fprintf(&names, `"p%d":{"type":"integer"},`, i)
	}
	schema := `{"type":"object","$defs":{"a":{"description":"` + strings.Repeat("x", 100_000) + `"}},"properties":{` +
		names.String() + `"q":{}}}`
	offer := calls.Offer{Tool: calls.Tool{Name: "f", Parameters: json.RawMessage(schema)}, Strict: true}
	refused := 0
	for _, name := range Names() {
		g, err := CallGrammar(name, []calls.Offer{offer}, false)
		if err != nil && strings.Contains(err.Error(), "bytes") {
			refused++
		}
		if len(g.Rules) > 1<<21 {
			t.Errorf("%s: %d bytes", name, len(g.Rules))
		}
	}
	if refused == 0 {
		t.Error("no format refused the tool")
	}
}
