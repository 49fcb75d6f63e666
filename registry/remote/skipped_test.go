package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestSkipped: an optional step that fails is one warning, and with Strict an error that is not tried again.
func TestSkipped(t *testing.T) {
	mount := fmt.Errorf("a mount was refused: %w", &StatusError{Method: "POST", Status: 503})
	for _, c := range []struct {
		name   string
		strict bool
		err    error
		want   error // nil: a warning
	}{
		{"a note", false, mount, nil},
		{"strict", true, mount, ErrSkipped},
		{"interrupted", false, fmt.Errorf("mount: %w", context.Canceled), context.Canceled},
		{"interrupted, strict", true, fmt.Errorf("mount: %w", context.Canceled), context.Canceled},
	} {
		var warned []string
		client := authClient(t, Options{Strict: c.strict, Warn: func(host string, err error) {
			warned = append(warned, host+": "+err.Error())
		}})
		for i := range maxWarnings { // a registry's own warnings hide none
			client.warn("r.example", fmt.Sprint(i))
		}
		warned = nil
		for range 2 {
			for _, host := range []string{"r.example", ""} {
				if err := client.Skipped(host, c.err); err != nil && strings.HasPrefix(err.Error(), ":") {
					t.Errorf("%s, host %q: %v", c.name, host, err)
				}
			}
			err := client.Skipped("r.example", c.err)
			if !errors.Is(err, c.want) || Temporary(err) {
				t.Errorf("%s: %v, want %v", c.name, err, c.want)
			}
		}
		var want []string
		if c.want == nil {
			want = []string{"r.example: " + c.err.Error(), ": " + c.err.Error()}
		}
		if !slices.Equal(warned, want) {
			t.Errorf("%s: warned %q, want %q", c.name, warned, want)
		}
	}
}
