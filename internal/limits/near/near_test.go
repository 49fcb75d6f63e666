package near

import (
	"slices"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"run", "rnu", 1},
		{"ab", "ba", 1}, {"abcd", "badc", 2}, {"smol", "smo", 1}, {"same", "same", 0}} {
		if got := Distance(c.a, c.b); got != c.want || Distance(c.b, c.a) != c.want {
			t.Errorf("%s, %s: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestNames(t *testing.T) {
	flags := []string{"temperature", "threads", "think", "top-k", "top-p", "max-tokens", "json"}
	for _, c := range []struct {
		name string
		want []string
	}{
		{"temprature", []string{"temperature"}},
		{"tempreature", []string{"temperature"}},
		{"temp", []string{"temperature"}},
		{"top", []string{"top-k", "top-p"}},
		{"max-token", []string{"max-tokens"}},
		{"maxtokens", []string{"max-tokens"}},
		{"th", []string{"threads", "think"}},
		{"j", nil}, // too short to stand for a name
		{"bogus", nil},
		{"", nil},
	} {
		if got := Names(c.name, flags); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
