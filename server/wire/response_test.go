package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"
)

// connection records what is written to it, and the deadlines.
type connection struct {
	*httptest.ResponseRecorder
	pieces    []int
	deadlines int
	failsAt   int // the number of a piece that fails; 0: none
}

func (c *connection) SetWriteDeadline(time.Time) error { c.deadlines++; return nil }

func (c *connection) Write(p []byte) (int, error) {
	c.pieces = append(c.pieces, len(p))
	if len(c.pieces) == c.failsAt {
		return 0, errors.New("i/o timeout")
	}
	return c.ResponseRecorder.Write(p)
}

// A large response is written in pieces, each within a time of its own, so that a client that goes on reading gets all.
func TestPieces(t *testing.T) {
	text := bytes.Repeat([]byte("x"), 2*pieceSize+5)
	c := &connection{ResponseRecorder: httptest.NewRecorder()}
	n, err := NewResponse(c, time.Minute).Write(text)
	if n != len(text) || err != nil || !reflect.DeepEqual(c.pieces, []int{pieceSize, pieceSize, 5}) || c.deadlines != 3 ||
		!bytes.Equal(c.Body.Bytes(), text) {
		t.Errorf("%d, %v: pieces %v, %d deadlines", n, err, c.pieces, c.deadlines)
	}
	c = &connection{ResponseRecorder: httptest.NewRecorder(), failsAt: 2}
	if n, err := NewResponse(c, time.Minute).Write(text); n != pieceSize || err == nil || len(c.pieces) != 2 {
		t.Errorf("a client that does not read: %d, %v, pieces %v", n, err, c.pieces)
	}
	c = &connection{ResponseRecorder: httptest.NewRecorder()}
	if err := WriteJSON(NewResponse(c, time.Minute), math.NaN()); err == nil || len(c.pieces) > 0 {
		t.Errorf("what JSON does not have: %v, %v", err, c.pieces)
	}
	if _, err := NewResponse(c, time.Minute).Write(nil); err != nil || c.Code != http.StatusOK {
		t.Errorf("nothing: %v", err)
	}
}

// The estimate of a value's JSON is not less than its texts, lists and numbers have, and not much more.
func TestSizeJSON(t *testing.T) {
	long := func(s string) string { return strings.Repeat(s, 1000) }
	numbers := make([]float32, 1000)
	ids := make([]int32, 1000)
	for i := range numbers {
		numbers[i], ids[i] = -float32(math.Pi)*float32(i)*1e-7, int32(i*i*i)-5000
	}
	type inner struct {
		Text   string   `json:"text"`
		Number *float64 `json:"number"`
		hidden string
	}
	for name, v := range map[string]any{
		"text": long("a"), "quotes": long(`"\`), "lines": long("\n\r\t"), "controls": long("\x01"), "wrong": long("\xff\xc3"),
		"separators": long("\u2028\u2029"), "other": long("é中"), "markup": long("<>&"), "floats": numbers, "ids": ids,
		"texts": strings.Split(long("ab "), " "), "raw": json.RawMessage(`"` + long("x") + `"`), "bytes": []byte(long("x")),
		"structs": []inner{{long("b"), new(1.5), ""}, {}}, "any": []any{long("c"), 1.25, nil, true, time.Now()},
		"map": map[string]float32{long("k"): 1, long("l"): 2}, "small": 7, "nil": nil,
		"wide": []int64{math.MinInt64, math.MaxInt64, 0}, "deep": &[]*[]string{{long("d")}},
	} {
		b, err := Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		const small = 64
		if got, want := sizeJSON(reflect.ValueOf(v)), int64(len(b)-1); got < want || got > 2*want+small {
			t.Errorf("%s: %d, its JSON has %d bytes", name, got, want)
		}
	}
}
