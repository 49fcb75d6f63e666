package instance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/internal/limits"
)

// member is a property of an object. A value is nil, bool, json.Number, string, []any or []member.
type member struct {
	name  string
	value any
}

// Read parses one JSON value.
func Read(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, err := readValue(d, 0)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = fmt.Errorf("unexpected data at byte %d", d.InputOffset())
		}
	}
	if err != nil {
		return nil, expr.Errorf(expr.ErrInvalid, "the instance is not JSON: %v", err)
	}
	return v, nil
}

func readValue(d *json.Decoder, depth int) (any, error) {
	if depth > 10*limits.GrammarNesting {
		return nil, fmt.Errorf("nested more than %d levels deep", 10*limits.GrammarNesting)
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('['):
		items := []any{}
		for d.More() {
			item, err := readValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
		_, err := d.Token()
		return items, err
	case json.Delim('{'):
		members := []member{}
		at := map[string]int{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			value, err := readValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			key := name.(string)
			if i, ok := at[key]; ok { // the last one counts, as in most parsers
				members[i].value = value
				continue
			}
			at[key] = len(members)
			members = append(members, member{key, value})
		}
		_, err := d.Token()
		return members, err
	}
	return t, nil
}

// spellings returns texts of a number: as given, and as an integer or a decimal if it is one of moderate length.
// spelled: an integer and a decimal are different numbers.
func spellings(text string, spelled bool) []string {
	out := []string{text}
	if len(text) > 400 {
		return out
	}
	if _, exponent, ok := strings.Cut(strings.ToLower(text), "e"); ok {
		if n, err := strconv.Atoi(exponent); err != nil || n > 400 || n < -400 {
			return out
		}
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return out
	}
	add := func(s string) {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	if r.IsInt() {
		if !spelled || !strings.Contains(text, ".") {
			add(r.Num().String())
		}
		add(r.Num().String() + ".0")
	}
	if places, exact := r.FloatPrec(); exact && places > 0 {
		add(r.FloatString(places))
	}
	return out
}
