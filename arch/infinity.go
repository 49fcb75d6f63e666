package arch

import "bytes"

// withInfinities returns a text in which each Infinity outside of strings, which Python writes and JSON does not have,
// is the object that transformers 5 writes for it.
func withInfinities(data []byte) []byte {
	const infinity = "Infinity"
	if !bytes.Contains(data, []byte(infinity)) {
		return data
	}
	var out []byte
	quoted := false
	for i := 0; i < len(data); i++ {
		switch {
		case quoted && data[i] == '\\' && i+1 < len(data):
			out = append(out, data[i])
			i++
		case data[i] == '"':
			quoted = !quoted
		case !quoted && bytes.HasPrefix(data[i:], []byte(infinity)):
			out = append(out, `{"__float__": "Infinity"}`...)
			i += len(infinity) - 1
			continue
		}
		out = append(out, data[i])
	}
	return out
}
