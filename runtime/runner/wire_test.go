package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits/fault"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime"
)

// namedKinds returns the errors that have a name on the wire.
func namedKinds(t *testing.T) []fault.Kind {
	t.Helper()
	list := slices.DeleteFunc(fault.Kinds(), func(k fault.Kind) bool { return k.Wire == "" })
	if len(list) < 13 || list[0].Err != mlx.ErrOutOfMemory {
		t.Fatalf("the kinds are %v", list)
	}
	return list
}

// TestKindsRoundTrip sends every kind through the wire: names and sentinels are distinct, and the error that arrives is
// the one that was sent.
func TestKindsRoundTrip(t *testing.T) {
	kinds, names := namedKinds(t), map[string]bool{}
	for _, k := range kinds {
		if k.Wire == "" || names[k.Wire] {
			t.Errorf("the name %q is empty or not unique", k.Wire)
		}
		names[k.Wire] = true
		got := overWire(t, fmt.Errorf("generate: %w", k.Err))
		for _, other := range kinds {
			if errors.Is(got, other.Err) != (other.Wire == k.Wire) {
				t.Errorf("%s: errors.Is returns %v for %s", k.Wire, errors.Is(got, other.Err), other.Wire)
			}
		}
		if want := "generate: " + k.Err.Error(); got.Error() != want {
			t.Errorf("%s: the message is %q, want %q", k.Wire, got, want)
		}
	}
	unknown := overWire(t, errors.New("some other fault"))
	for _, k := range kinds {
		if errors.Is(unknown, k.Err) {
			t.Errorf("an error without a kind arrives as %s", k.Wire)
		}
	}
}

// TestKindOfTwo joins every pair of kinds in both orders, 100 times each: the kind is always the one that comes first
// in the table.
func TestKindOfTwo(t *testing.T) {
	kinds := namedKinds(t)
	for i, first := range kinds {
		for _, second := range kinds[i+1:] {
			for range 100 {
				for _, err := range []error{
					errors.Join(first.Err, second.Err), fmt.Errorf("%w while %w", second.Err, first.Err),
				} {
					if f := wireError(err); f.Kind != first.Wire {
						t.Fatalf("%v: the kind is %q, want %q", err, f.Kind, first.Wire)
					}
				}
			}
		}
	}
}

func overWire(t *testing.T, err error) error {
	t.Helper()
	b, fault := json.Marshal(wireError(err))
	if fault != nil {
		t.Fatal(fault)
	}
	var f wireFailure
	if fault := json.Unmarshal(b, &f); fault != nil {
		t.Fatal(fault)
	}
	return f.error()
}

// An error of a busy model keeps when to try again.
func TestRetryAfterRoundTrips(t *testing.T) {
	sent := &runtime.RetryError{Err: fmt.Errorf("512 requests wait: %w", runtime.ErrBusy), After: 2500 * time.Millisecond}
	got := overWire(t, sent)
	if after, ok := runtime.RetryAfter(got); !ok || after != sent.After || !errors.Is(got, runtime.ErrBusy) ||
		got.Error() != sent.Error() {
		t.Errorf("%v, again after %v", got, after)
	}
	if _, ok := runtime.RetryAfter(overWire(t, runtime.ErrBusy)); ok {
		t.Error("an error that does not say when to try again says so after the wire")
	}
}
