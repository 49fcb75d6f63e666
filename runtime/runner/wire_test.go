package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
)

// TestKindsRoundTrip sends every kind through the wire: names and sentinels are distinct, and the error that arrives is
// the one that was sent.
func TestKindsRoundTrip(t *testing.T) {
	names := map[string]bool{}
	for _, k := range kinds {
		if k.name == "" || names[k.name] {
			t.Errorf("the name %q is empty or not unique", k.name)
		}
		names[k.name] = true
		got := overWire(t, fmt.Errorf("generate: %w", k.is))
		for _, other := range kinds {
			if errors.Is(got, other.is) != (other.name == k.name) {
				t.Errorf("%s: errors.Is returns %v for %s", k.name, errors.Is(got, other.is), other.name)
			}
		}
		if want := "generate: " + k.is.Error(); got.Error() != want {
			t.Errorf("%s: the message is %q, want %q", k.name, got, want)
		}
	}
	unknown := overWire(t, errors.New("some other fault"))
	for _, k := range kinds {
		if errors.Is(unknown, k.is) {
			t.Errorf("an error without a kind arrives as %s", k.name)
		}
	}
}

// TestKindOfTwo joins every pair of kinds in both orders, 100 times each: the kind is always the one that comes first
// in the table.
func TestKindOfTwo(t *testing.T) {
	for i, first := range kinds {
		for _, second := range kinds[i+1:] {
			for range 100 {
				for _, err := range []error{errors.Join(first.is, second.is), fmt.Errorf("%w while %w", second.is, first.is)} {
					if f := wireError(err); f.Kind != first.name {
						t.Fatalf("%v: the kind is %q, want %q", err, f.Kind, first.name)
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
