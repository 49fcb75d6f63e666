package verdict

import (
	"net/http"
	"testing"
	"time"
)

func TestDelay(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "7", 7 * time.Second},
		{"Retry-After", " 7 ", 7 * time.Second},
		{"Retry-After", "7.25", 7250 * time.Millisecond},
		{"Retry-After", "0.0001", time.Millisecond},
		{"Retry-After", "7s", 7 * time.Second},
		{"Retry-After", "2500 ms", 2500 * time.Millisecond},
		{"Retry-After", "1m30s", 90 * time.Second},
		{"Retry-After", "3600", time.Hour},
		{"Retry-After", "1767323105", time.Minute}, // a Unix time
		{"Retry-After", "1767323105.5", 60500 * time.Millisecond},
		{"Retry-After", "1767323105000", time.Minute}, // in milliseconds
		{"Retry-After", "1767323000", 0},              // that has passed
		{"Retry-After", "Fri, 02 Jan 2026 03:05:05 GMT", time.Minute},
		{"Retry-After", "Friday, 02-Jan-26 03:05:05 GMT", time.Minute},
		{"Retry-After", "2026-01-02T03:05:05Z", time.Minute},
		{"Retry-After", "Fri, 02 Jan 2026 03:03:05 GMT", 0},
		{"Retry-After", "0", 0},
		{"Retry-After", "-7", 0},
		{"Retry-After", "-7s", 0},
		{"Retry-After", "soon", 0},
		{"Retry-After", "", 0},
		{"Retry-After", "NaN", 0},
		{"Retry-After", "Inf", 0},
		{"Retry-After", "99999999999999999999", 0},
		{"Retry-After", "1e300", 0},
		{"RateLimit", `"api";r=0;t=55`, 56 * time.Second},
		{"RateLimit", `"api"; t=55; r=0`, 56 * time.Second},
		{"RateLimit", `"burst";r=3;t=1, "api";r=0;t=55`, 56 * time.Second},
		{"RateLimit", `"api";r=3;t=55`, 0},
		{"RateLimit", `"api";r=0;t=-5`, 0},
		{"RateLimit", `"api";r=0;t=1e99`, 0},
		{"RateLimit", `r=0`, 0},
		{"X-RateLimit-Reset", "30", 0}, // without a count of what is left
	} {
		got, ok := Delay(http.Header{http.CanonicalHeaderKey(c.name): {c.value}}, now)
		if got != c.want || ok != (c.want > 0) {
			t.Errorf("%s: %q is %s, %t, want %s", c.name, c.value, got, ok, c.want)
		}
	}
	for _, c := range []struct {
		header map[string]string
		want   time.Duration
	}{
		{map[string]string{"Retry-After": "soon", "RateLimit": `"api";r=0;t=5`}, 6 * time.Second},
		{map[string]string{"Retry-After": "9", "RateLimit": `"api";r=0;t=5`}, 9 * time.Second},
		{map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1767323105"}, time.Minute},
		{map[string]string{"RateLimit-Remaining": "0", "RateLimit-Reset": "30"}, 30 * time.Second},
		{map[string]string{"RateLimit-Remaining": "0;w=21600"}, 0}, // Docker Hub's form
		{map[string]string{"X-RateLimit-Remaining": "4", "X-RateLimit-Reset": "30"}, 0},
	} {
		h := http.Header{}
		for name, value := range c.header {
			h.Set(name, value)
		}
		if got, ok := Delay(h, now); got != c.want || ok != (c.want > 0) {
			t.Errorf("%v is %s, %t, want %s", c.header, got, ok, c.want)
		}
	}
	if got, _ := Delay(http.Header{"Retry-After": {"3", "9", "x"}}, now); got != 9*time.Second {
		t.Errorf("of several: %s", got)
	}
}

func TestLimited(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
		want   bool
	}{
		{429, "", true}, {503, "TOOMANYREQUESTS", true}, {403, "TOOMANYREQUESTS", true}, {503, "", false},
		{404, "", false},
	} {
		if got := Limited(c.status, c.code); got != c.want {
			t.Errorf("%d %s: %t", c.status, c.code, got)
		}
	}
}

func FuzzDelay(f *testing.F) {
	for _, s := range []string{"7", "1e9", "-0", "Fri, 02 Jan 2026 03:05:05 GMT", `"api";r=0;t=55`, "1767323105000"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, name := range []string{"Retry-After", "Ratelimit"} {
			if d, ok := Delay(http.Header{name: {s}}, time.Unix(1e9, 0)); d < 0 || ok != (d > 0) {
				t.Errorf("%s: %q is %s", name, s, d)
			}
		}
	})
}
