package verdict

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Limited reports whether a status, or the error code of a registry with it, says that requests are limited.
func Limited(status int, code string) bool {
	return status == http.StatusTooManyRequests || status >= 400 && code == "TOOMANYREQUESTS"
}

// Delay returns how long a response asks its client to wait, from now on. ok is false if it asks for nothing usable: no
// delay, one that has passed, or a value that means nothing. It reads
//
//   - Retry-After (RFC 9110, section 10.2.3): seconds or a date; also, against the standard, a fraction of seconds, a
//     number with a unit, and a Unix time in seconds or milliseconds
//   - RateLimit (draft-ietf-httpapi-ratelimit-headers-09): the reset of a policy with nothing left
//   - RateLimit-Reset, seconds or a Unix time, if RateLimit-Remaining is 0; also of both with the prefix X-
//
// The longest counts. A caller bounds it.
func Delay(h http.Header, now time.Time) (wait time.Duration, ok bool) {
	for _, v := range h.Values("Retry-After") {
		wait = max(wait, after(v, now))
	}
	for _, v := range h.Values("RateLimit") {
		for policy := range strings.SplitSeq(v, ",") {
			wait = max(wait, reset(policy))
		}
	}
	for _, prefix := range []string{"", "X-"} {
		left, _, _ := strings.Cut(h.Get(prefix+"RateLimit-Remaining"), ";")
		if n, err := strconv.ParseFloat(strings.TrimSpace(left), 64); err == nil && n == 0 {
			wait = max(wait, after(h.Get(prefix+"RateLimit-Reset"), now))
		}
	}
	return wait, wait > 0
}

// Numbers from these on are Unix times, in 2001, not numbers of seconds: 31 years.
const (
	unixSeconds = 1e9
	unixMillis  = 1e12
)

// after returns the delay of one value; 0 if there is none.
func after(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if n, err := strconv.ParseFloat(value, 64); err == nil {
		switch {
		case n >= unixMillis:
			return until(n/1000, now)
		case n >= unixSeconds:
			return until(n, now)
		case n > 0:
			return time.Duration(math.Ceil(n*1000)) * time.Millisecond
		}
		return 0
	}
	if d, err := time.ParseDuration(strings.ReplaceAll(value, " ", "")); err == nil {
		return max(d, 0)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0)
	}
	if at, err := time.Parse(time.RFC3339, value); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// until returns the delay to a Unix time.
func until(seconds float64, now time.Time) time.Duration {
	if !(seconds < math.MaxInt32*100) {
		return 0
	}
	return max(time.UnixMilli(int64(seconds*1000)).Sub(now), 0)
}

// reset returns the delay of a policy of RateLimit, such as "api";r=0;t=55; 0 if the policy has something left.
func reset(policy string) time.Duration {
	left, seconds := "", 0.0
	for i, p := range strings.Split(policy, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		switch value = strings.TrimSpace(value); {
		case i == 0: // the policy's name
		case name == "r":
			left = value
		case name == "t":
			seconds, _ = strconv.ParseFloat(value, 64)
		}
	}
	if left != "0" || !(seconds >= 0 && seconds < unixSeconds) {
		return 0
	}
	return time.Duration(seconds+1) * time.Second // t is rounded down
}
