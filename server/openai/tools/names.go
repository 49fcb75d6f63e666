package tools

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// longest is the length of the longest name that models are trained with.
const longest = 64

// Joined returns a legal name for a tool of a namespace: both names with two underscores between them, as other clients
// name the tools of MCP servers.
func Joined(namespace, name string) string {
	if namespace != "" {
		if !strings.HasSuffix(namespace, "__") {
			namespace += "__"
		}
		name = namespace + name
	}
	legal := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	if len(legal) > longest {
		sum := sha256.Sum256([]byte(name))
		legal = legal[:longest-9] + "_" + hex.EncodeToString(sum[:4])
	}
	return legal
}

// unused returns a name, with a number if it is taken.
func unused(name string, taken map[string]bool) string {
	for n, base := 2, name; taken[name]; n++ {
		end := fmt.Sprintf("_%d", n)
		name = base[:min(len(base), longest-len(end))] + end
	}
	return name
}
