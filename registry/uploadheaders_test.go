package registry

import (
	"net/http"
	"testing"
)

func TestRangeEnd(t *testing.T) {
	for _, tt := range []struct {
		header string
		want   int64
		ok     bool
	}{
		{"0-99", 100, true},
		{"bytes=0-99", 100, true},
		{" 0-99 ", 100, true},
		{"0-0", 0, true}, // distribution, for an empty upload
		{"0--1", 0, true},
		{"", 0, false},
		{"5-99", 0, false},
		{"0-", 0, false},
		{"0--2", 0, false},
		{"0-99999999999999999999", 0, false},
		{"bytes 0-99/100", 0, false},
	} {
		h := http.Header{"Range": {tt.header}}
		if got, ok := rangeEnd(h); got != tt.want || ok != tt.ok {
			t.Errorf("%q: %d, %v, want %d, %v", tt.header, got, ok, tt.want, tt.ok)
		}
	}
}
