package arch

import "bytes"

// Python writes infinity as a word that JSON does not have, and transformers 5 as an object.
const (
	infinity       = "Infinity"
	infinityObject = `{"__float__": "Infinity"}`
)

// PlainJSON returns a config.json as JSON: each Infinity outside of strings is the object that transformers 5 writes.
func PlainJSON(data []byte) []byte {
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
			out = append(out, infinityObject...)
			i += len(infinity) - 1
			continue
		}
		out = append(out, data[i])
	}
	return out
}

// WithInfinities is the inverse of PlainJSON for a text that was edited since, if its original is not JSON.
func WithInfinities(edited, original []byte) []byte {
	if bytes.Equal(PlainJSON(original), original) {
		return edited
	}
	return bytes.ReplaceAll(edited, []byte(infinityObject), []byte(infinity))
}
