package convert

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
)

// jsonField is a key of a JSON object, and the position of its value in the text.
type jsonField struct {
	key        string
	begin, end int
}

// jsonFields locates the fields of an object in its text. The text is edited in place, so that unchanged fields keep
// their order, spacing and number format.
func jsonFields(data []byte) ([]jsonField, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errJSON
	}
	var out []jsonField
	for d.More() {
		t, err := d.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			return nil, errJSON
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, errJSON
		}
		end := int(d.InputOffset())
		out = append(out, jsonField{key, end - len(value), end})
	}
	return out, nil
}

// appendKeys appends keys to an object, all with the same value.
func appendKeys(data []byte, keys []string, value []byte) ([]byte, error) {
	fields, err := jsonFields(data)
	if err != nil {
		return nil, err
	}
	at, comma := bytes.IndexByte(data, '{')+1, ""
	if len(fields) > 0 {
		at, comma = fields[len(fields)-1].end, ","
	}
	var add []byte
	for _, k := range keys {
		add = append(add, comma+"\n  "...)
		add = append(strconv.AppendQuote(add, k), ": "...)
		add = append(add, value...)
		comma = ","
	}
	return slices.Concat(data[:at], add, data[at:]), nil
}

// setDType sets the element type in a configuration, wherever it states one.
func setDType(data []byte, name string) ([]byte, error) {
	out, found, err := replaceDType(data, name, 0)
	if err != nil || found {
		return out, err
	}
	return appendKeys(data, []string{"torch_dtype"}, strconv.AppendQuote(nil, name))
}

// replaceDType replaces the values of dtype and torch_dtype, at the top level and in text_config.
func replaceDType(data []byte, name string, depth int) (out []byte, found bool, err error) {
	fields, err := jsonFields(data)
	if err != nil {
		return nil, false, err
	}
	out = data
	for _, f := range slices.Backward(fields) { // backward, so that earlier positions stay valid
		value := data[f.begin:f.end]
		switch {
		case (f.key == "dtype" || f.key == "torch_dtype") && value[0] == '"':
			value, found = strconv.AppendQuote(nil, name), true
		case f.key == "text_config" && value[0] == '{' && depth == 0:
			inner := false
			if value, inner, err = replaceDType(value, name, depth+1); err != nil {
				return nil, false, err
			}
			found = found || inner
		default:
			continue
		}
		out = slices.Concat(out[:f.begin], value, out[f.end:])
	}
	return out, found, nil
}
