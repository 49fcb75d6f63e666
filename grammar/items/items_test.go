package items

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

// writer makes texts of few values, in many spellings.
type writer struct{ r *rand.Rand }

func (w writer) pick(all ...string) string { return all[w.r.IntN(len(all))] }

func (w writer) value(depth int) string {
	switch n := w.r.IntN(10); {
	case n < 3:
		return w.pick("0", "-0", "-0.0", "1", "1.0", "10e-1", "12", "120", "1.2e2", "0.5", "5e-1", "-1", "100", "1e2")
	case n < 6 || depth == 0:
		return w.pick(`""`, `"a"`, `"\u0061"`, `"ab"`, `"\n"`, `"\u000A"`, `"é"`, `"\u00e9"`, `"😀"`, `"\ud83d\ude00"`,
			`"\ud83d"`, `"\ufffd"`, `"\ud83d\ud83d\ude00"`, `"\/"`, `"/"`)
	case n < 7:
		return w.pick("true", "false", "null")
	case n < 9:
		return "[" + w.items(depth-1) + "]"
	}
	var members []string
	for range w.r.IntN(3) {
		members = append(members, w.pick(`"a"`, `"b"`, `"\u0061"`, `"ab"`)+": "+w.value(depth-1))
	}
	return "{" + strings.Join(members, w.pick(", ", ",")) + "}"
}

func (w writer) items(depth int) string {
	var all []string
	for range w.r.IntN(4) {
		all = append(all, w.value(depth))
	}
	return strings.Join(all, w.pick(", ", ",", " ,\n"))
}

// canonical returns a text that equal values share.
func canonical(t *testing.T, v any) string {
	t.Helper()
	switch v := v.(type) {
	case json.Number:
		r, ok := new(big.Rat).SetString(v.String())
		if !ok {
			t.Fatal(v)
		}
		return r.String()
	case []any:
		parts := make([]string, len(v))
		for i, item := range v {
			parts[i] = canonical(t, item)
		}
		return fmt.Sprintf("%q", parts)
	case map[string]any:
		parts := map[string]string{}
		for k, item := range v {
			parts[k] = canonical(t, item)
		}
		return fmt.Sprintf("%q", parts) // sorted
	}
	return fmt.Sprintf("%T %[1]q", v)
}

// An item repeats one before it exactly if they decode to equal values, and a text that matches none before its end
// does not repeat one.
func FuzzItems(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		w := writer{rand.New(rand.NewPCG(seed, 7))}
		text := (*Text)(nil).Next('[', true)
		seen := map[string]bool{}
		for i := range 1 + w.r.IntN(8) {
			item := w.value(2)
			d := json.NewDecoder(bytes.NewReader([]byte(item)))
			d.UseNumber()
			var v any
			if err := d.Decode(&v); err != nil {
				t.Fatal(err)
			}
			before := ""
			if i > 0 {
				before = ", "
			}
			matched := true
			for k, b := range []byte(before + item) {
				if k > len(before) {
					matched = matched && text.Matches()
				}
				if text = text.Next(b, b == '[' && w.r.IntN(2) == 0); text == nil {
					t.Fatalf("%s: not JSON at %d", item, k)
				}
			}
			key := canonical(t, v)
			if got := text.Repeats(); got != seen[key] {
				t.Fatalf("%s after %v repeats: %v", item, seen, got)
			}
			if seen[key] && !matched && !strings.ContainsAny(item, "{") { // a member may be written again
				t.Fatalf("%s repeats, but did not match on the way", item)
			}
			seen[key] = true
		}
		if text = text.Next(']', false); text != nil {
			t.Fatal("the array goes on")
		}
	})
}
