package declared

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/ingotml/ingot/internal/limits/pyjson"
)

// Strip removes the quantization settings from a config.json, because an image's blobs describe their own types. All
// other bytes stay the same. With a key, Strip removes the preceding comma and white space, or the following ones for
// the first key. It returns texts without such keys, or that are not a JSON object, unchanged.
func Strip(config []byte) []byte {
	plain := pyjson.Plain(config)
	var cuts []span
	walk(plain, 0, 0, &cuts)
	if len(cuts) == 0 {
		return config
	}
	var out []byte
	at := 0
	for _, s := range cuts {
		out = append(out, plain[at:s.begin]...)
		at = s.end
	}
	return pyjson.AsWritten(append(out, plain[at:]...), config)
}

type span struct{ begin, end int }

// walk collects the ranges to remove from the object that starts at data[start:]: top-level keys, and those in
// text_config.
func walk(data []byte, start, depth int, cuts *[]span) {
	d := json.NewDecoder(bytes.NewReader(data[start:]))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return
	}
	last, kept := start+int(d.InputOffset()), false // the end of the last value that stays, or of the brace
	var run *span                                   // consecutive keys to remove
	for d.More() {
		at := start + int(d.InputOffset())
		t, err := d.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			return
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return
		}
		end := start + int(d.InputOffset())
		if IsObject(value) && slices.Contains([]string{MLX, HF, Compression}, key) {
			switch {
			case run != nil:
			case kept:
				run = &span{begin: last}
			default:
				run = &span{begin: skipComma(data, at)}
			}
			run.end = end
			continue
		}
		if run != nil && !kept {
			run.end = skipComma(data, run.end)
		}
		if run != nil {
			*cuts, run = append(*cuts, *run), nil
		}
		if key == "text_config" && depth == 0 && IsObject(value) {
			walk(data, end-len(value), depth+1, cuts)
		}
		last, kept = end, true
	}
	if run != nil {
		*cuts = append(*cuts, *run)
	}
}

// skipComma returns the position after white space and a comma.
func skipComma(data []byte, at int) int {
	for at < len(data) && bytes.IndexByte([]byte(" \t\r\n,"), data[at]) >= 0 {
		at++
	}
	return at
}
