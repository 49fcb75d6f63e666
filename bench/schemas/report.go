package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

var names = regexp.MustCompile(`"[^"]*"|[0-9]+|#\S*`)

// reason is an error without names and numbers, to count equal ones.
func reason(err error) string {
	text := err.Error()
	if _, after, ok := strings.Cut(text, "the keyword "); ok {
		return "the keyword " + after
	}
	if _, after, ok := strings.Cut(text, "the format "); ok {
		return "the format " + after
	}
	return names.ReplaceAllString(text, "_")
}

func (t *tally) print() {
	rate := func(n, of int) string {
		return fmt.Sprintf("%d of %d (%.2f %%)", n, of, 100*float64(n)/float64(max(of, 1)))
	}
	fmt.Printf("compiled          %s\n", rate(t.compiled, t.schemas))
	fmt.Printf("invalid accepted  %s\n", rate(t.invalidAccepted, t.invalid))
	fmt.Printf("valid refused     %s\n", rate(t.validRefused, t.valid))
	fmt.Printf("not judged        %d\n", t.notJudged)
	fmt.Printf("compile           %s\n", summary(t.compile))
	if t.options.masks {
		fmt.Printf("first mask        %s\n", summary(t.first))
		fmt.Printf("mask              %s\n", summary(t.masks))
	}
	type counted struct {
		reason string
		n      int
	}
	var all []counted
	for r, n := range t.reasons {
		all = append(all, counted{r, n})
	}
	slices.SortFunc(all, func(a, b counted) int { return b.n - a.n })
	for _, c := range all[:min(len(all), 60)] {
		fmt.Printf("%6d  %.150s\n", c.n, c.reason)
	}
}

func summary(all []time.Duration) string {
	if len(all) == 0 {
		return "none"
	}
	slices.Sort(all)
	at := func(p float64) time.Duration { return all[min(int(p*float64(len(all))), len(all)-1)] }
	return fmt.Sprintf("p50 %v, p99 %v, max %v, n %d", at(0.5), at(0.99), all[len(all)-1], len(all))
}
