package jsonfile

import (
	"math"
	"strconv"
	"testing"
)

// With up to 15 digits and a small exponent both roundings are exact; with more digits they may differ.
func TestParseScore(t *testing.T) {
	for _, text := range []string{"0", "-0.0", "1", "-1", "-10.5", "3.827439120254171", "1e3", "-2.5E-4",
		"123456789012345678", "0.1", "1e22", "1e-22", "5e-324", "0e999"} {
		want, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ParseScore(text); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]float64{
		"-10.691653741226187":      -(10691653741226187.0 / 1e15),
		"-8.4713574121546071234":   -(8471357412154607123.0 / 1e18),
		"-8.47135741215460712345":  -(8471357412154607123.0 * 10 / 1e19),
		"123456789012345678901.5":  12345678901234567890.0 * 10,
		"1e-400":                   0,
		"0.00000000000000000000e5": 0,
	} {
		got, err := ParseScore(text)
		if err != nil || math.Abs(got-want) > math.Abs(want)*1e-15 {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"1e999", "-1e309", "1e99999999999999999999",
		"1234567890123456789012345678901234567890e300"} {
		if got, err := ParseScore(text); err == nil {
			t.Errorf("%s: %v", text, got)
		}
	}
}
