package servertest

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	sampleLine = regexp.MustCompile(`^([a-z_]+)(\{[a-z]+="(?:[^"\\]|\\.)*"(?:,[a-z]+="(?:[^"\\]|\\.)*")*\})? (\S+)$`)
	headLine   = regexp.MustCompile(`^# (HELP|TYPE) ([a-z_]+) (.+)$`)
)

// Samples parses metrics and checks their form.
func Samples(t *testing.T, text string) map[string]float64 {
	t.Helper()
	out, kinds := map[string]float64{}, map[string]string{}
	current := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if head := headLine.FindStringSubmatch(line); head != nil {
			if current = head[2]; head[1] == "TYPE" {
				kinds[current] = head[3]
			} else if kinds[current] != "" {
				t.Errorf("%s appears twice", current)
			}
			continue
		}
		m := sampleLine.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("not a sample: %q", line)
			continue
		}
		if name := m[1]; name != current && !(kinds[current] == "histogram" && strings.HasPrefix(name, current+"_")) {
			t.Errorf("%q is under %s", line, current)
		}
		if kinds[current] == "counter" && !strings.HasSuffix(current, "_total") {
			t.Errorf("counter %s lacks the suffix _total", current)
		}
		value, err := strconv.ParseFloat(m[3], 64)
		if _, twice := out[m[1]+m[2]]; twice || err != nil {
			t.Errorf("%q: duplicate %v, %v", line, twice, err)
		}
		out[m[1]+m[2]] = value
	}
	return out
}

// Measured returns the metrics of a server.
func (f *Fixture) Measured(t *testing.T) map[string]float64 {
	t.Helper()
	status, text := f.Ask(t, "GET", "/metrics", "")
	if status != 200 {
		t.Fatalf("%d: %s", status, text)
	}
	return Samples(t, text)
}

// Expect compares some samples.
func Expect(t *testing.T, got, want map[string]float64) {
	t.Helper()
	for name, v := range want {
		if x, ok := got[name]; !ok || x != v {
			t.Errorf("%s is %v (found: %v), want %v", name, x, ok, v)
		}
	}
}
