package bytesize

import "testing"

func TestParse(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "17B": 17, "1.5k": 1536, "2KB": 2000, "64 MiB": 64 << 20, "3gb": 3e9, "1TiB": 1 << 40,
		"": 0, "0": 0, "-1": 0, "x": 0, "1 x": 0, "NaN": 0, "Inf": 0, "1e30": 0, "9000000t": 0, "MiB": 0,
	} {
		got, err := Parse(text)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%q is %d, %v, want %d", text, got, err, want)
		}
	}
}
